import { directionOf } from "@/lib/direction";
import type { Node } from "./hast";

const WHOLE = new Set(["table", "ul", "ol"]);
const PARTS = new Set(["th", "td", "li", "ul", "ol"]);
const CODE = new Set(["code", "kbd", "pre", "samp", "var"]);

/** A rehype plugin: a table or list has one direction, its columns and markers included, not one for each of its parts. */
export function oneDirection() {
  return (tree: Node) => visit(tree, directionOf(textOf(tree)) ?? "ltr");
}

function visit(node: Node, around: string) {
  if (WHOLE.has(node.tagName ?? "")) setDirection(node, directionIn(node) ?? around);
  else node.children?.forEach((child) => visit(child, around));
}

/** The heads of columns say more than names in the cells. */
function directionIn(node: Node) {
  const head = node.children?.find((child) => child.tagName === "thead");
  const isMirrored = head && directionOf(textOf(head)) === "rtl";
  return isMirrored ? "rtl" : directionOf(textOf(node));
}

function setDirection(node: Node, dir: string) {
  node.properties = { ...node.properties, dir };
  const inside = (part: Node) => {
    if (PARTS.has(part.tagName ?? "")) part.properties = { ...part.properties, dir };
    // An empty head names no column: read out, it is a cell like others.
    if (part.tagName === "th" && !part.children?.length)
      part.properties = { ...part.properties, role: "cell" };
    part.children?.forEach(inside);
  };
  node.children?.forEach(inside);
}

function textOf(node: Node): string {
  if (node.type === "text") return node.value ?? "";
  if (CODE.has(node.tagName ?? "")) return "";
  return (node.children ?? []).map(textOf).join(" ");
}
