import { createElement, type ReactNode } from "react";
import { attribute, child, children } from "./package";

const MOST_DEPTH = 40;

/** An equation of Word (`oMath`) as MathML, which browsers draw themselves. Parts of no known kind are their letters. */
export const equation = (of: Element, display: boolean): ReactNode =>
  m("math", { display: display ? "block" : "inline" }, ...all(of, 0));

const m = (name: string, properties: Record<string, unknown> | null, ...content: ReactNode[]) =>
  createElement(name, properties, ...content);

const all = (of: Element | undefined, depth: number): ReactNode[] =>
  children(of).map((one) => part(one, depth + 1));

function part(of: Element, depth: number): ReactNode {
  if (depth > MOST_DEPTH) return m("mtext", null, "…");
  /** A part of it as one element, which all that have a fixed number of parts need. */
  const row = (name: string) => m("mrow", null, ...all(child(of, name), depth));
  const setting = (name: string) => attribute(child(of, `${of.localName}Pr`, name), "val");
  switch (of.localName) {
    case "r":
      return m(
        "mrow",
        null,
        ...children(of, "t").flatMap((text) => tokens(text.textContent ?? "", isUpright(of))),
      );
    case "f":
      return m("mfrac", setting("type") === "noBar" ? { linethickness: 0 } : null, row("num"), row("den"));
    case "sSup":
      return m("msup", null, row("e"), row("sup"));
    case "sSub":
      return m("msub", null, row("e"), row("sub"));
    case "sSubSup":
      return m("msubsup", null, row("e"), row("sub"), row("sup"));
    case "sPre":
      return m("mmultiscripts", null, row("e"), m("mprescripts", null), row("sub"), row("sup"));
    case "rad":
      return child(of, "deg")?.textContent
        ? m("mroot", null, row("e"), row("deg"))
        : m("msqrt", null, row("e"));
    case "nary":
      return m("mrow", null, signed(setting("chr") ?? "∫", row("sub"), row("sup")), row("e"));
    case "func":
      return m("mrow", null, row("fName"), m("mo", null, "\u2061"), row("e"));
    case "limLow":
      return m("munder", null, row("e"), row("lim"));
    case "limUpp":
      return m("mover", null, row("e"), row("lim"));
    case "acc":
      return m("mover", { accent: "true" }, row("e"), m("mo", null, setting("chr") ?? "\u0302"));
    case "bar":
      return setting("pos") === "top"
        ? m("mover", null, row("e"), m("mo", null, "‾"))
        : m("munder", null, row("e"), m("mo", null, "_"));
    case "d":
      return fenced(of, depth, setting);
    case "m":
      return grid(
        children(of, "mr").map((line) => children(line, "e")),
        depth,
      );
    case "eqArr":
      return grid(
        children(of, "e").map((line) => [line]),
        depth,
      );
    default:
      return of.localName.endsWith("Pr") ? null : m("mrow", null, ...all(of, depth));
  }
}

function signed(sign: string, below: ReactNode, above: ReactNode): ReactNode {
  const beside = /[∫-∳]/.test(sign);
  return m(beside ? "msubsup" : "munderover", null, m("mo", null, sign), below, above);
}

function fenced(of: Element, depth: number, setting: (name: string) => string | undefined): ReactNode {
  const inside = children(of, "e").flatMap((one, index) => [
    index > 0 && m("mo", null, setting("sepChr") ?? "|"),
    ...all(one, depth),
  ]);
  return m(
    "mrow",
    null,
    m("mo", null, setting("begChr") ?? "("),
    ...inside,
    m("mo", null, setting("endChr") ?? ")"),
  );
}

const grid = (rows: Element[][], depth: number) =>
  m(
    "mtable",
    null,
    ...rows.map((row) => m("mtr", null, ...row.map((cell) => m("mtd", null, ...all(cell, depth))))),
  );

const isUpright = (run: Element) =>
  child(run, "rPr", "nor") !== undefined || attribute(child(run, "rPr", "sty"), "val") === "p";

/** Numbers and words are one each, everything else is a sign. Letters are variables unless the writer set them upright. */
const tokens = (text: string, upright: boolean): ReactNode[] =>
  (text.match(/\d+(?:[.,]\d+)*|\p{L}+|\s+|./gu) ?? []).flatMap((token) => {
    if (/^\d/.test(token)) return [m("mn", null, token)];
    if (/^\s/.test(token)) return [m("mtext", null, "\u00a0")];
    if (!/^\p{L}/u.test(token)) return [m("mo", null, token)];
    return upright
      ? [m("mi", { mathvariant: "normal" }, token)]
      : [...token].map((letter) => m("mi", null, letter));
  });
