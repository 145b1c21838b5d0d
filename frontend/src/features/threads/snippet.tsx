import type { ReactNode } from "react";

/** `marks` are places in code points, as the server counts; JavaScript counts half of some characters. */
export function marked(
  text: string,
  marks: readonly (readonly number[])[],
): { text: string; hit: boolean }[] {
  const points = Array.from(text);
  const parts: { text: string; hit: boolean }[] = [];
  let at = 0;
  for (const [start = 0, end = 0] of [...marks].sort((one, other) => one[0]! - other[0]!)) {
    if (start < at) continue;
    parts.push({ text: points.slice(at, start).join(""), hit: false });
    parts.push({ text: points.slice(start, end).join(""), hit: true });
    at = end;
  }
  parts.push({ text: points.slice(at).join(""), hit: false });
  return parts.filter((part) => part.text !== "");
}

/** Snippets are cut out of Markdown; its signs would only disturb here. */
export const plain = (text: string) =>
  text
    .replace(/!?\[(?:citation:)?([^[\]]*)\]\([^()\s]*\)?/g, "$1")
    .replace(/\]\((?:https?:|\/)[^()\s]*\)?|\[citation:/g, "")
    .replace(/\*\*|__|~~|`+|\$\$|^\s*(?:#+|>|[-*+]) |(?<=\s)(?:#+|>) |\s*\|[\s|:-]*/gm, (sign) =>
      sign.includes("|") ? " " : "",
    );

export function Marked({ text, marks }: { text: string; marks: readonly (readonly number[])[] }): ReactNode {
  return marked(text, marks).map((part, index) =>
    part.hit ? (
      <mark key={index} className="rounded-sm bg-primary-soft px-px font-medium text-primary">
        {plain(part.text)}
      </mark>
    ) : (
      plain(part.text)
    ),
  );
}
