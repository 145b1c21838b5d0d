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

/** A command, a skill, or a prompt of an MCP server. */
export interface SlashItem {
  id: string;
  command: SlashCommand | null;
  label: string;
  text: string;
  /** Optional argument of a command that also works alone. */
  more?: string;
}

/** The skill that a message begins with, and the space behind it: "/weather ". */
export function skillPrefix(text: string, names: readonly string[]): string {
  const [prefix, name = ""] = /^\/(\S+)\s/.exec(text) ?? [""];
  return names.includes(name) ? prefix : "";
}

/** Text after the slash, or null if the text does not start a command. */
export function slashQuery(text: string): string | null {
  return /^\/([\p{L}\p{M}\p{N}_:.-]*)$/u.exec(text)?.[1]?.toLowerCase() ?? null;
}

/** First the one of that name, then those whose name begins with the query, then those that mention it. */
export function filterSlash<T extends { label: string; text: string }>(
  items: readonly T[],
  query: string,
): T[] {
  const typed = `/${query}`;
  const rank = ({ label, text }: T) =>
    [label === typed, label.startsWith(typed), `${label} ${text}`.toLowerCase().includes(query)].indexOf(
      true,
    );
  return [0, 1, 2].flatMap((wanted) => items.filter((item) => rank(item) === wanted));
}

export const slashItemId = (id: string) => `slash-${id}`;
export const SLASH_LIST = "slash-commands";
