/** Commands that a message may begin with. */
export const SLASH_COMMANDS = [
  "new",
  "model",
  "mode",
  "attach",
  "folder",
  "files",
  "compact",
  "export",
  "stop",
  "settings",
  "help",
] as const;
export type SlashCommand = (typeof SLASH_COMMANDS)[number];

export interface SlashItem {
  id: SlashCommand;
  label: string;
  text: string;
  disabled?: boolean;
}

/** What is typed after the slash, or null if the text is no beginning of a command. */
export function slashQuery(text: string): string | null {
  return /^\/([\p{L}\p{N}_-]*)$/u.exec(text)?.[1]?.toLowerCase() ?? null;
}

/** First those whose name begins with the query, then those that mention it. */
export function filterSlash<T extends { id: string; label: string; text: string }>(
  items: readonly T[],
  query: string,
): T[] {
  const starts = items.filter((item) => item.id.startsWith(query));
  const mentions = items.filter(
    (item) =>
      !item.id.startsWith(query) && `${item.id} ${item.label} ${item.text}`.toLowerCase().includes(query),
  );
  return [...starts, ...mentions];
}

export const slashItemId = (id: string) => `slash-${id}`;
export const SLASH_LIST = "slash-commands";
