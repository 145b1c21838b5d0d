/** Terminal output of a program as text with styles, never markup. */

interface AnsiPiece {
  text: string;
  /** Classes of our own tokens, so that every theme keeps its contrast. */
  className: string;
}

interface Style {
  colour: string;
  bold: boolean;
  dim: boolean;
  italic: boolean;
  underline: boolean;
}

const PLAIN: Style = { colour: "", bold: false, dim: false, italic: false, underline: false };
const COLOURS = [
  "text-muted-foreground",
  "text-destructive",
  "text-success",
  "text-warning",
  "text-primary",
  "text-primary",
  "text-primary",
  "",
];

const ESC = "\u001b";
/** Groups: parameters and end of a CSI sequence; everything else that begins with ESC is matched whole. */

const SEQUENCE =
  /\u001b(?:\[([0-9;:?<=>]*)[ -/]*([@-~])|\][^\u0007\u001b]*(?:\u0007|\u001b\\|$)|[PX^_][^\u001b]*(?:\u001b\\|$)|[ -/]*[0-~])/g;

const CONTROL = /[\u0000-\u0008\u000b\u000c\u000e-\u001a\u001c-\u001f\u007f]/g;

/** Colours as classes; cursor movements and other commands vanish, a carriage return overwrites its line. */
export function parseAnsi(text: string): AnsiPiece[] {
  const shown = text.includes("\r") ? overwritten(text) : text;
  const pieces: AnsiPiece[] = [];
  let style = PLAIN;
  let at = 0;
  const add = (piece: string) => {
    const clean = piece.replace(CONTROL, "").replaceAll(ESC, "");
    if (!clean) return;
    const className = classesOf(style);
    const last = pieces.at(-1);
    if (last?.className === className) last.text += clean;
    else pieces.push({ text: clean, className });
  };
  for (const found of shown.matchAll(SEQUENCE)) {
    add(shown.slice(at, found.index));
    at = found.index + found[0].length;
    if (found[2] === "m") style = restyled(style, found[1] ?? "");
  }
  add(shown.slice(at));
  return pieces;
}

/** The text alone, for copying and for looking at its end. */
export const withoutAnsi = (text: string) =>
  parseAnsi(text)
    .map((piece) => piece.text)
    .join("");

/** Of a line that was written several times (a progress bar) the last version; "\r\n" is one line end. */
function overwritten(text: string): string {
  return text
    .replace(/\r+\n/g, "\n")
    .split("\n")
    .map((line) => {
      const versions = line.replace(/\r+$/, "").split("\r");
      // Colours that an earlier version switched on stay on.
      return versions.slice(0, -1).flatMap(stylesIn).join("") + (versions.at(-1) ?? "");
    })
    .join("\n");
}

const stylesIn = (text: string) =>
  [...text.matchAll(SEQUENCE)].filter((found) => found[2] === "m").map((f) => f[0]);

function restyled(style: Style, parameters: string): Style {
  const codes = parameters.split(/[;:]/).map((code) => Number(code) || 0);
  let next = { ...style };
  for (let i = 0; i < codes.length; i++) {
    const code = codes[i]!;
    if (code === 38 || code === 48) {
      const isIndexed = codes[i + 1] === 5;
      const colour = isIndexed
        ? indexed(codes[i + 2] ?? 7)
        : nearest(codes[i + 2] ?? 0, codes[i + 3] ?? 0, codes[i + 4] ?? 0);
      if (code === 38) next.colour = colour;
      i += isIndexed ? 2 : 4;
    } else next = withCode(next, code);
  }
  return next;
}

function withCode(style: Style, code: number): Style {
  if (code === 0) return PLAIN;
  if (code === 1) return { ...style, bold: true };
  if (code === 2) return { ...style, dim: true };
  if (code === 3) return { ...style, italic: true };
  if (code === 4) return { ...style, underline: true };
  if (code === 22) return { ...style, bold: false, dim: false };
  if (code === 23) return { ...style, italic: false };
  if (code === 24) return { ...style, underline: false };
  if (code === 39) return { ...style, colour: "" };
  if (code >= 30 && code <= 37) return { ...style, colour: COLOURS[code - 30]! };
  if (code >= 90 && code <= 97) return { ...style, colour: COLOURS[code - 90]! };
  return style;
}

function indexed(index: number): string {
  if (index < 16) return COLOURS[index % 8]!;
  if (index >= 232) return index < 250 ? COLOURS[0]! : "";
  const cube = index - 16;
  return nearest(Math.floor(cube / 36) * 51, (Math.floor(cube / 6) % 6) * 51, (cube % 6) * 51);
}

/** The token whose hue is nearest. */
function nearest(red: number, green: number, blue: number): string {
  const high = Math.max(red, green, blue);
  if (high - Math.min(red, green, blue) < 40) return high < 170 ? COLOURS[0]! : "";
  const bits = [red, green, blue]
    .map((value, i) => (value > high * 0.6 ? 1 << i : 0))
    .reduce((a, b) => a + b, 0);
  return COLOURS[bits]!;
}

function classesOf({ colour, bold, dim, italic, underline }: Style): string {
  const muted = dim && !colour ? COLOURS[0]! : colour;
  return [muted, bold && "font-semibold", italic && "italic", underline && "underline"]
    .filter(Boolean)
    .join(" ");
}
