import { createContext, use } from "react";
import type { Turn } from "../thread/turns";

/** Text that is searched in the conversation; null if none is. Folded parts open if they contain it. */
export const FindContext = createContext<RegExp | null>(null);

export const useHolds = (texts: readonly string[]) => {
  const wanted = use(FindContext);
  return wanted !== null && texts.some((text) => count(text, wanted) > 0);
};

/** One occurrence: the `nth` of a turn. */
export interface Place {
  turn: number;
  nth: number;
}

/** The words as they are, in any case and with any space between them. */
export function patternOf(query: string): RegExp | null {
  const words = query.trim().replace(/[\\^$.*+?()[\]{}|/]/g, "\\$&");
  return words ? new RegExp(words.replace(/\s+/g, "\\s+"), "giu") : null;
}

/** All texts of the person and the agent, in order. */
export function placesOf(turns: readonly Turn[], wanted: RegExp): Place[] {
  return turns.flatMap((turn, index) => {
    const found = textsOf(turn).reduce((sum, text) => sum + count(text, wanted), 0);
    return Array.from({ length: found }, (_, nth) => ({ turn: index, nth }));
  });
}

function textsOf({ question, steps, clarification, answer }: Turn): string[] {
  const said = steps.flatMap((part) => (part.kind === "text" || part.kind === "steering" ? [part.text] : []));
  return [question?.text, ...said, answer?.text, clarification?.context, clarification?.question].filter(
    (text) => text !== undefined,
  );
}

/** As it is drawn, signs of Markdown do not count; in code they are no signs. */
function count(text: string, wanted: RegExp): number {
  const shown = text.replace(/\]\([^)\s]{0,2000}\)/g, "]");
  const plain = shown.replace(/\*\*|__|~~|`+|[[\]]/g, "");
  return Math.max(shown.match(wanted)?.length ?? 0, plain.match(wanted)?.length ?? 0);
}

const UNSEEN = "button, style, .sr-only, .katex-mathml, [aria-hidden=true]";
const BLOCK = "p, li, td, th, pre, h1, h2, h3, h4, h5, h6, div";

/** Position in the rendered turn. */
export function rangesIn(element: Element, wanted: RegExp): Range[] {
  const walker = document.createTreeWalker(element, NodeFilter.SHOW_TEXT);
  const blocks = new Map<Element | null, Text[]>();
  while (walker.nextNode()) {
    const node = walker.currentNode as Text;
    if (node.parentElement?.closest(UNSEEN)) continue;
    const block = node.parentElement?.closest(BLOCK) ?? null;
    blocks.set(block, [...(blocks.get(block) ?? []), node]);
  }
  return [...blocks.values()].flatMap((nodes) => rangesOf(nodes, wanted));
}

function rangesOf(nodes: readonly Text[], wanted: RegExp): Range[] {
  const text = nodes.map((node) => node.data).join("");
  return [...text.matchAll(wanted)].map(({ index, 0: { length } }) => {
    const range = document.createRange();
    range.setStart(...at(nodes, index));
    range.setEnd(...at(nodes, index + length));
    return range;
  });
}

/** A node and a place in it, from a place in the text of all. */
function at(nodes: readonly Text[], offset: number): [Text, number] {
  let rest = offset;
  for (const node of nodes) {
    if (rest <= node.length) return [node, rest];
    rest -= node.length;
  }
  const last = nodes.at(-1)!;
  return [last, last.length];
}
