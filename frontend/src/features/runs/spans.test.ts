import { expect, it } from "vitest";
import type { Span } from "@/lib/api";
import { axisOf } from "./axis";
import { placesOf, rowsOf, treeOf } from "./spans";

let made = 0;
const span = (kind: Span["kind"], from: number, to: number | null, more: Partial<Span> = {}): Span => ({
  id: (made += 1),
  parent: null,
  run_id: "r",
  kind,
  name: kind,
  start_ms: from,
  end_ms: to,
  status: "success",
  detail: "",
  ...more,
});

function withSubagent() {
  const model = span("model", 0, 10, { message_id: "m1", call_id: "c1" });
  const task = span("tool", 10, 90, { name: "task", call_id: "c1" });
  const agent = span("agent", 11, 90, { parent: task.id, call_id: "c1" });
  const inner = span("tool", 20, 60, { parent: agent.id, call_id: "c2" });
  const command = span("command", 30, 60, { parent: inner.id, call_id: "c2" });
  const last = span("model", 60, 90, { parent: agent.id, message_id: "m2" });
  return [model, task, agent, inner, command, last];
}

it("a call of task and its subagent are one row, which has what the subagent did", () => {
  const spans = withSubagent();
  const tree = treeOf(spans);
  const closed = rowsOf(tree, new Set());
  expect(closed.map(({ span: { kind }, level, open }) => [kind, level, open])).toEqual([
    ["model", 1, null],
    ["agent", 1, false],
  ]);
  expect(closed[1]!.inside.map(({ kind }) => kind)).toEqual(["command", "model"]);
  const opened = rowsOf(tree, new Set([spans[2]!.id]));
  expect(
    opened.map(({ span: { kind }, level, position, siblings }) => [kind, level, position, siblings]),
  ).toEqual([
    ["model", 1, 1, 2],
    ["agent", 1, 2, 2],
    ["tool", 2, 1, 2],
    ["model", 2, 2, 2],
  ]);
  expect(opened[1]!.inside).toEqual([]);
});

it("a span is where its message or call is, else where that is within which it happened", () => {
  const spans = withSubagent();
  expect(placesOf(spans[0]!, spans)).toEqual(["m1", "m1:thinking", "c1"]);
  expect(placesOf(spans[4]!, spans)).toEqual(["c2", "c2", "c1", "c1"]);
  expect(placesOf(span("retry", 0, 1), spans)).toEqual([]);
});

it("the axis is linear without waits", () => {
  const { at, ticks } = axisOf([span("model", 0, 4000)], 4000);
  expect([0, 1000, 4000].map(at)).toEqual([0, 0.25, 1]);
  expect(ticks.map(({ milliseconds }) => milliseconds)).toEqual([0, 1000, 2000, 3000]);
  expect(ticks.map((tick) => tick.at)).toEqual([0, 0.25, 0.5, 0.75]);
});

it("a wait of days for the person leaves room for the work, and two at a time count once", () => {
  const day = 86_400_000;
  const decisions = [span("decision", 1000, day), span("decision", 1000, day + 1000)];
  const { at, ticks } = axisOf(decisions, day + 2000);
  const wait = at(day + 1000) - at(1000);
  expect(wait).toBeGreaterThan(0.05);
  expect(wait).toBeLessThan(0.15);
  expect(at(1000)).toBeGreaterThan(0.4);
  expect(at(day + 2000)).toBe(1);
  expect(ticks.length).toBeLessThanOrEqual(5);
  expect(ticks.at(-1)!.milliseconds).toBeGreaterThan(day);
});

it.each([0, 1, 99, 3_600_000, 40 * 3_600_000, 1e10])("an axis of %d ms has a few ticks", (elapsed) => {
  const { at, ticks } = axisOf([], elapsed);
  expect(ticks.length).toBeGreaterThanOrEqual(1);
  expect(ticks.length).toBeLessThanOrEqual(5);
  expect(ticks.every((tick) => tick.at >= 0 && tick.at < 1)).toBe(true);
  expect(Number.isFinite(at(elapsed))).toBe(true);
});

it("a wait that lasts reaches to the end", () => {
  const { at } = axisOf([span("decision", 1000, null)], 1000);
  expect(at(1000)).toBe(1);
});
