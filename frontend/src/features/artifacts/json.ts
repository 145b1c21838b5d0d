/** Position at which a text stops being JSON, counted from 1. */
export interface Fault {
  line: number;
  column: number;
}

const MAX_INDENT = 40;
const LITERAL = /[-+.\w]+/y;
const BLANK = /[ \t\r\n]*/y;

/** JSON with one value per line, or where it is none. Values stand as they were written: numbers keep all their digits. */
export function pretty(text: string): string | Fault {
  const open: string[] = [];
  const line = () => `\n${"  ".repeat(Math.min(MAX_INDENT, open.length))}`;
  let out = "";
  let at = 0;
  // `first` of an object or array, and any `other`: on a line of its own.
  let next: "value" | "first" | "other" | "colon" | "more" = "value";
  for (;;) {
    at += match(BLANK, text, at).length;
    const char = text[at];
    const inObject = open.at(-1) === "{";
    if (char === undefined) return open.length === 0 && next === "more" ? out : faultAt(text, at);
    if (open.length > 0 && (next === "first" || next === "more") && char === (inObject ? "}" : "]")) {
      open.pop();
      out += (next === "first" ? "" : line()) + char;
      next = "more";
      at += 1;
    } else if (next === "more" || next === "colon") {
      if (char !== (next === "colon" ? ":" : ",") || open.length === 0) return faultAt(text, at);
      out += next === "colon" ? ": " : ",";
      next = next === "colon" ? "value" : "other";
      at += 1;
    } else {
      const isKey: boolean = inObject && next !== "value";
      const begins: boolean = !isKey && (char === "{" || char === "[");
      const token = begins ? char : scalarAt(text, at);
      if (token === null || (isKey && char !== '"')) return faultAt(text, at);
      out += (next === "value" ? "" : line()) + token;
      if (begins) open.push(char);
      next = begins ? "first" : isKey ? "colon" : "more";
      at += token.length;
    }
  }
}

function scalarAt(text: string, at: number): string | null {
  const token = text[at] === '"' ? quotedAt(text, at) : match(LITERAL, text, at);
  try {
    JSON.parse(token);
    return token;
  } catch {
    return null;
  }
}

function quotedAt(text: string, at: number): string {
  for (let end = text.indexOf('"', at + 1); end > 0; end = text.indexOf('"', end + 1)) {
    let slashes = 0;
    while (text[end - 1 - slashes] === "\\") slashes += 1;
    if (slashes % 2 === 0) return text.slice(at, end + 1);
  }
  return "";
}

function match(pattern: RegExp, text: string, at: number): string {
  pattern.lastIndex = at;
  return pattern.exec(text)?.[0] ?? "";
}

function faultAt(text: string, at: number): Fault {
  const before = text.slice(0, at).split(/\r\n|\r|\n/);
  return { line: before.length, column: before.at(-1)!.length + 1 };
}
