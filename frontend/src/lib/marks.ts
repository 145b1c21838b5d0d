/** Characters that cannot be seen, or that change the direction of others, made visible. Pure. */

const HIDDEN = /(?![\n\t])[\p{C}\p{Default_Ignorable_Code_Point}\p{Zl}\p{Zp}\u2800]/gu;
/** A joiner of several code points is part of the picture. */
const IN_EMOJI =
  /(?<=\p{Extended_Pictographic})\uFE0F|(?<=[\p{Extended_Pictographic}\uFE0F\p{EMod}])\u200D(?=\p{Extended_Pictographic})/gu;

export interface Piece {
  text: string;
  /** It stands for a character that cannot be seen. */
  mark: boolean;
}

export function markedPieces(text: string): Piece[] {
  const kept = new Set([...text.matchAll(IN_EMOJI)].map(({ index }) => index));
  const pieces: Piece[] = [];
  let from = 0;
  for (const { index, 0: found } of text.matchAll(HIDDEN)) {
    if (kept.has(index)) continue;
    if (index > from) pieces.push({ text: text.slice(from, index), mark: false });
    pieces.push({ text: markOf(found), mark: true });
    from = index + found.length;
  }
  if (from < text.length) pieces.push({ text: text.slice(from), mark: false });
  return pieces;
}

export const marked = (text: string): string =>
  markedPieces(text)
    .map((piece) => piece.text)
    .join("");

const markOf = (character: string) =>
  `⟦U+${character.codePointAt(0)!.toString(16).toUpperCase().padStart(4, "0")}⟧`;
