/** Inline math as models write it, `$x$`, `\(x\)`, `\[x\]`, in the form that is never mistaken for money: `$$x$$`. */

const CODE =
  /(^|\n)([ \t]*)(`{3,}|~{3,})[\s\S]*?(?:\n[ \t]*\3[`~]*[ \t]*(?=\n|$)|$)|(`+)(?!`)[\s\S]*?[^`]\4(?!`)/g;

export function withClearMath(text: string): string {
  if (!text.includes("$") && !text.includes("\\(") && !text.includes("\\[")) return text;
  return outsideCode(text, cleared);
}

/** The text with everything changed that is no code. */
export function outsideCode(text: string, change: (part: string) => string): string {
  let out = "";
  let at = 0;
  for (const code of text.matchAll(CODE)) {
    out += change(text.slice(at, code.index)) + code[0];
    at = code.index + code[0].length;
  }
  return out + change(text.slice(at));
}

/** As in pandoc: no blank inside the signs, and nothing around them that makes it a price or a variable. */
const SINGLE = /(^|[^\\$\w])\$(?![\s$])((?:\\.|[^$\\\n])*?[^\s$\\]|(?:\\.)+)\$(?![\w$])/g;

/** No sign opens twice before it closes, so that signs which never close take linear time. */
function cleared(text: string): string {
  return text
    .replace(
      /(?<!\\)\\\[((?:(?!(?<!\\)\\\[)[\s\S])*?)\\\]/g,
      (_, body: string) => `\n$$\n${body.trim()}\n$$\n`,
    )
    .replace(/(?<!\\)\\\(((?:(?!(?<!\\)\\\().)+?)\\\)/g, (_, body: string) => `$$${body.trim()}$$`)
    .replace(/^[ \t]*\$\$([^$\n]+)\$\$[ \t]*$/gm, (_, body: string) => `$$\n${body.trim()}\n$$`)
    .replace(SINGLE, (_, before: string, body: string) => `${before}$$${body}$$`);
}
