/** Whether every word that was typed is found in one of the texts. */
export function matchesAll(typed: string, ...texts: string[]): boolean {
  const all = texts.join(" ").toLowerCase();
  return typed
    .toLowerCase()
    .split(/\s+/)
    .every((word) => all.includes(word));
}
