/** From the spans of a timeline to the rows of its tree. Pure. */
import type { Span } from "@/lib/api";

export interface Node {
  span: Span;
  children: Node[];
}

export interface Row {
  span: Span;
  /** From 1 on, as `aria-level`. */
  level: number;
  position: number;
  siblings: number;
  /** null: nothing is in it. */
  open: boolean | null;
  /** Children of a closed row, drawn in its line. */
  inside: readonly Span[];
}

/** Milliseconds of waiting that are worth a row. */
const NOTICED = 100;

/** A call of `task` is its subagent: one row for both. */
export function treeOf(spans: readonly Span[]): Node[] {
  const nodes = new Map(spans.map((span) => [span.id, { span, children: [] as Node[] }]));
  const roots: Node[] = [];
  for (const node of nodes.values()) {
    if (node.span.kind === "queue" && lastedOf(node.span, Infinity) < NOTICED) continue;
    const above = node.span.parent === null ? undefined : nodes.get(node.span.parent);
    (above?.children ?? roots).push(node);
  }
  return roots.map(withoutTask);
}

function withoutTask(node: Node): Node {
  const agent = node.children.find(({ span }) => span.kind === "agent");
  const shown = agent ?? node;
  return { span: shown.span, children: shown.children.map(withoutTask) };
}

export function rowsOf(nodes: readonly Node[], opened: ReadonlySet<number>, level = 1): Row[] {
  return nodes.flatMap(({ span, children }, i) => {
    const open = children.length > 0 ? opened.has(span.id) : null;
    const inside = open === false ? leavesOf(children) : [];
    const row = { span, level, position: i + 1, siblings: nodes.length, open, inside };
    return open ? [row, ...rowsOf(children, opened, level + 1)] : [row];
  });
}

const leavesOf = (nodes: readonly Node[]): Span[] =>
  nodes.flatMap(({ span, children }) => (children.length ? leavesOf(children) : [span]));

/** Place of a span in the conversation: ids of messages and calls, the nearest first. */
export function placesOf(span: Span, spans: readonly Span[]): string[] {
  const own = [span.message_id, span.message_id && `${span.message_id}:thinking`, span.call_id];
  const above = spans.find(({ id }) => id === span.parent);
  return [
    ...own.filter((id) => id !== undefined && id !== ""),
    ...(above ? placesOf(above, spans) : []),
  ] as string[];
}

export const lastedOf = (span: Span, elapsed: number) =>
  Math.max(0, (span.end_ms ?? Math.max(elapsed, span.start_ms)) - span.start_ms);

export interface Totals {
  steps: number;
  input: number;
  cached: number;
  output: number;
}

export function totalsOf(spans: readonly Span[]): Totals {
  const sum = (key: "input_tokens" | "cached_tokens" | "output_tokens") =>
    spans.reduce((all, span) => all + (span[key] ?? 0), 0);
  return {
    steps: spans.filter(({ kind }) => kind === "model" || kind === "tool").length,
    input: sum("input_tokens"),
    cached: sum("cached_tokens"),
    output: sum("output_tokens"),
  };
}
