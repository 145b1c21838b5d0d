import { expect, test } from "vitest";
import { cutBefore, loaded, reduce, type ThreadState } from "./thread-state";
import { toTurns } from "./turns";
import type { WireMessage } from "./wire-message";

const human = (id: string, run_id: string): WireMessage => ({
  id,
  type: "human",
  content: id,
  additional_kwargs: { run_id },
});
const usage_metadata = { input_tokens: 900, output_tokens: 1, total_tokens: 901 };
const ai = (id: string): WireMessage => ({ id, type: "ai", content: id, usage_metadata });
const messages = [human("h1", "r1"), ai("a1"), human("h2", "r2"), ai("a2")];
const summary = (upto: string, text: string, run_id: string) => ({
  upto,
  text,
  run_id,
  before: 900,
  after: 90,
});
const update = (...summaries: object[]) => ({
  seq: 1,
  method: "updates",
  params: { namespace: [], timestamp: 0, data: { node: "model", values: { summaries } } },
});
const marksOf = (state: ThreadState) =>
  toTurns(state.messages, {
    ...state,
    waiting: false,
    waitingCalls: new Set(),
    runs: new Map(),
    branches: new Map(),
  }).map(({ marks }) => marks.map(({ text }) => text));
const two = loaded({ messages }, [], false);

test("a summary stands below the last message that it stands for, also when it comes again", () => {
  const made = update(summary("a1", "one", "r2"), summary("", "", "r2"), summary("gone", "other", "r0"));
  const state = reduce(two, [made, made]);
  expect(marksOf(state)).toEqual([["one"], []]);
  expect(marksOf(reduce(state, [update(summary("a1", "newer", "r2"))]))).toEqual([["newer"], []]);
});

test("a summary goes with the branch in which it was made", () => {
  const cut = (run: string) => marksOf(cutBefore(reduce(two, [update(summary("a1", "one", run))]), "h2"));
  expect(cut("r1")).toEqual([["one"]]);
  expect(cut("r2")).toEqual([[]]);
});

test("the gauge shows what a summary has made of the last count", () => {
  expect(two.contextUsed).toBe(900);
  expect(loaded({ messages, summaries: [summary("a2", "all", "r2")] }, [], false).contextUsed).toBe(90);
  expect(loaded({ messages, summaries: [summary("a1", "one", "r2")] }, [], false).contextUsed).toBe(900);
  expect(reduce(two, [update(summary("a2", "all", "r2"))]).contextUsed).toBe(90);
});
