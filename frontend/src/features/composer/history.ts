/** Walking through one's own messages with the arrow keys. */
export interface Recall {
  /** Place in the list, newest last; null: not walking. */
  at: number | null;
  /** Content of the field before. */
  before: string;
}
export const NOT_WALKING: Recall = { at: null, before: "" };

/** One message back (-1) or forward (1); null if there is nowhere to go. */
export function step(
  recall: Recall,
  direction: -1 | 1,
  own: readonly string[],
  text: string,
): [Recall, string] | null {
  const from = recall.at ?? own.length;
  const to = from + direction;
  if (to < 0 || (recall.at === null && direction === 1)) return null;
  if (to >= own.length) return [NOT_WALKING, recall.before];
  return [{ at: to, before: recall.at === null ? text : recall.before }, own[to]!];
}

/** The list to walk through: neither empty ones nor the same twice in a row. */
export function ownMessages(texts: readonly string[]): string[] {
  const said = texts.map((text) => text.trim()).filter(Boolean);
  return said.filter((text, index) => text !== said[index - 1]);
}
