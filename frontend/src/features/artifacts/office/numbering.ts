import { attribute, child, children } from "./package";

/** The levels of a list, by its number. */
export function listsOf(root: Element | null): Map<string, Element[]> {
  const abstract = new Map(
    children(root, "abstractNum").map((one) => [attribute(one, "abstractNumId") ?? "", children(one, "lvl")]),
  );
  return new Map(
    children(root, "num").map((one) => [
      attribute(one, "numId") ?? "",
      abstract.get(attribute(child(one, "abstractNumId"), "val") ?? "") ?? [],
    ]),
  );
}

/** Label of a list entry, and its level. `counts` holds the counters of each list, by level. */
export function markerOf(
  numbering: Element | undefined,
  lists: Map<string, Element[]>,
  counts: Map<string, number[]>,
): { text: string; level: number } | null {
  const id = attribute(child(numbering, "numId"), "val") ?? "0";
  const level = Math.min(8, Math.max(0, Number(attribute(child(numbering, "ilvl"), "val")) || 0));
  const levels = lists.get(id);
  if (!levels) return null;
  const kind = attribute(child(levels[level], "numFmt"), "val") ?? "bullet";
  if (kind === "none") return null;
  if (kind === "bullet") return { text: "•", level };
  const counted = counts.get(id) ?? [];
  counts.set(id, [...Array.from({ length: level }, (_, n) => counted[n] ?? 1), (counted[level] ?? 0) + 1]);
  const text = attribute(child(levels[level], "lvlText"), "val") ?? `%${level + 1}.`;
  const letters = kind === "lowerLetter" || kind === "upperLetter";
  const number = (n: number) => {
    const value = counts.get(id)?.[n] ?? 1;
    if (!letters || n !== level) return String(value);
    return String.fromCharCode((kind === "lowerLetter" ? 97 : 65) + ((value - 1) % 26));
  };
  return { text: text.replace(/%(\d)/g, (_, n) => number(Number(n) - 1)), level };
}
