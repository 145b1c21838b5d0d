/** As it is compared: in lower case, and without the apostrophe, of which there are two. */
const folded = (text: string) => text.trim().toLocaleLowerCase().replace(/['’]/g, "");

/** True if every typed word occurs in one of the texts. */
export function matchesAll(typed: string, ...texts: string[]): boolean {
  const all = folded(texts.join(" "));
  return folded(typed)
    .split(/\s+/)
    .every((word) => all.includes(word));
}

export const isExactly = (typed: string, ...names: string[]) =>
  typed !== "" && names.some((name) => folded(name) === folded(typed));

/** Exact matches first, then those that begin with the text; the others keep their order. */
export function ranked<Item extends { label: string }>(typed: string, items: readonly Item[]): Item[] {
  const rank = ({ label }: Item) =>
    isExactly(typed, label) ? 0 : folded(label).startsWith(folded(typed)) ? 1 : 2;
  return items
    .map((item, i) => [rank(item), i, item] as const)
    .sort(([one, i], [other, j]) => one - other || i - j)
    .map(([, , item]) => item);
}
