import type { Node } from "./hast";

export const CALLOUTS = ["note", "tip", "important", "warning", "caution"] as const;
export type CalloutKind = (typeof CALLOUTS)[number];

const MARK = /^\[!(\w+)\][ \t]*(?:\n|$)/;

/** A rehype plugin: a quotation that begins with `[!NOTE]`, alone in its line, is marked as a callout, as on GitHub. */
export function callouts() {
  return visit;
}

function visit(node: Node) {
  node.children?.forEach(visit);
  if (node.tagName !== "blockquote") return;
  const paragraph = node.children?.find((child) => child.type === "element");
  const words = paragraph?.tagName === "p" ? paragraph.children?.[0] : undefined;
  const [mark = "", name = ""] = MARK.exec(words?.value ?? "") ?? [];
  const kind = CALLOUTS.find((one) => one === name.toLowerCase());
  if (!kind || !words || !paragraph?.children) return;
  // Words of the same line make it a quotation, also those that are no plain text.
  if (!mark.endsWith("\n") && paragraph.children.length > 1 && paragraph.children[1]?.tagName !== "br")
    return;
  words.value = words.value!.slice(mark.length);
  const rest = paragraph.children.slice(1);
  if (!words.value) paragraph.children = rest[0]?.tagName === "br" ? rest.slice(1) : rest;
  if (!paragraph.children.length) node.children = node.children?.filter((child) => child !== paragraph);
  node.properties = { ...node.properties, "data-callout": kind };
}
