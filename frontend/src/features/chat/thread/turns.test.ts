import { describe, expect, it } from "vitest";
import { EMPTY, loaded, reduce } from "./thread-state";
import { toTurns, type RunFacts } from "./turns";

const event = (method: string, data: unknown) => ({
  seq: 1,
  method,
  params: { namespace: [], timestamp: 0, data },
});

it("a model is silent until anything else comes", () => {
  const waiting = (seconds: number) => event("custom", { type: "llm_waiting", seconds });
  const silent = reduce(EMPTY, [event("lifecycle", { event: "running" }), waiting(15), waiting(30)]);
  expect(silent.silence).toBe(30);
  expect(reduce(silent, [event("messages", { event: "message-start", id: "a1" })]).silence).toBeNull();
});

describe("an answer that ended too early", () => {
  const turnOf = (content: string, stopReason: string) => {
    const messages = [
      { id: "h1", type: "human", content: "Do it", additional_kwargs: { run_id: "r1" } },
      { id: "a1", type: "ai", content },
    ];
    const run: RunFacts = {
      runId: "r1",
      lastRunId: "r1",
      status: "success",
      stopReason,
      verification: null,
      error: null,
      cost: null,
      input: 0,
      output: 0,
      startedAt: null,
      endedAt: null,
    };
    const state = loaded({ messages }, [], false);
    const around = {
      ...state,
      waiting: false,
      waitingCalls: new Set<string>(),
      runs: new Map([["r1", run]]),
      branches: new Map(),
    };
    return toTurns(state.messages, around)[0];
  };

  it("says why, and leaves the words that say what was repeated", () => {
    expect(turnOf("Half", "length")).toMatchObject({ stopReason: "length" });
    expect(turnOf("All", "end_turn")).toMatchObject({ stopReason: null });
    const loop =
      "Again.\n\n[FORCED STOP] The work was stopped because it repeated itself: bash (ls) was called 5 times.";
    expect(turnOf(loop, "loop")).toMatchObject({ stopReason: "loop", answer: { text: loop } });
  });
});

it("options of a question have a label and a description, however the model wrote them", () => {
  const options = [
    "Red",
    { label: "Blue", description: "Calm" },
    { value: 3, hint: "Three" },
    { title: "Green" },
    {},
  ];
  const messages = [
    { id: "h1", type: "human", content: "Do it", additional_kwargs: { run_id: "r1" } },
    {
      id: "a1",
      type: "ai",
      content: "",
      tool_calls: [{ id: "c1", name: "ask_clarification", args: { question: "Which?", options } }],
    },
    { id: "t1", type: "tool", content: "asked", tool_call_id: "c1", name: "ask_clarification" },
  ];
  const state = loaded({ messages }, [], false);
  const around = {
    ...state,
    waiting: false,
    waitingCalls: new Set<string>(),
    runs: new Map(),
    branches: new Map(),
  };
  expect(toTurns(state.messages, around)[0]?.clarification?.options).toEqual([
    { label: "Red", description: "" },
    { label: "Blue", description: "Calm" },
    { label: "3", description: "Three" },
    { label: "Green", description: "" },
  ]);
});

it("a call stands as it was made, or with what the person answered", () => {
  const args = { command: "old" };
  const decision = { type: "edit", args: { command: "new" } };
  const answered = { type: "respond", message: "It is done." };
  const messages = [
    { id: "h1", type: "human", content: "Do it", additional_kwargs: { run_id: "r1" } },
    { id: "a1", type: "ai", content: "", tool_calls: ["c1", "c2"].map((id) => ({ id, name: "bash", args })) },
    { id: "t1", type: "tool", content: "out", tool_call_id: "c1", additional_kwargs: { decision } },
    {
      id: "t2",
      type: "tool",
      content: "For the model",
      tool_call_id: "c2",
      additional_kwargs: { decision: answered },
    },
  ];
  const state = loaded({ messages }, [], false);
  const around = {
    ...state,
    waiting: false,
    waitingCalls: new Set<string>(),
    runs: new Map(),
    branches: new Map(),
  };
  const calls = toTurns(state.messages, around)[0]?.steps.flatMap((part) =>
    part.kind === "tool" ? [part.call] : [],
  );
  expect(calls).toMatchObject([
    { decision: "edit", args: { command: "new" }, result: "out" },
    { decision: "respond", args: { command: "old" }, result: "It is done." },
  ]);
});

it("calls that the person went on without are none that were made", () => {
  const question = (id: string) => ({ id, type: "human", content: id, additional_kwargs: { run_id: id } });
  const call = { id: "c1", name: "bash", args: {} };
  const asking = { id: "a1", type: "ai", content: "", tool_calls: [call] };
  const around = { waiting: false, waitingCalls: new Set<string>(), runs: new Map(), branches: new Map() };
  const statusOf = (...messages: object[]) => {
    const state = loaded({ messages } as Parameters<typeof loaded>[0], [], false);
    const part = toTurns(state.messages, { ...state, ...around })[0]?.steps[0];
    return part?.kind === "tool" && [part.call.status, part.call.cause?.code];
  };
  expect(statusOf(question("h1"), asking)).toEqual(["stopped", undefined]);
  expect(statusOf(question("h1"), asking, question("h2"))).toEqual(["error", "rejected"]);
});
