import { describe, expect, it } from "vitest";
import { cutBefore, EMPTY, loaded, reduce } from "./thread-state";
import { TurnCache } from "./turns";
import type { WireMessage } from "./wire-message";
import {
  ai,
  around,
  begin,
  begun,
  block,
  delta,
  end,
  event,
  finish,
  human,
  say,
  start,
  turnsOf,
  update,
} from "./test-events";

describe("a run that is followed", () => {
  const question = begun(null, [human("h1", "r1")]);

  it("shows nothing of a message that is hidden, and none of it in the one before", () => {
    const result = [
      start("n", "human", { metadata: { hide_from_ui: true } }),
      block(0, { type: "text", text: "A task has ended." }),
      end(),
    ];
    const state = reduce(EMPTY, [
      begun(null, [human("h1", "r1")]),
      ...say("a1", "Hi"),
      ...result,
      ...say("a2", "It has."),
    ]);
    expect(state.messages.map(({ id, text }) => [id, text])).toEqual([
      ["h1", "hello"],
      ["a1", "Hi"],
      ["a2", "It has."],
    ]);
  });

  it("keeps a message that came in behind the answer to it in its place, also when the next run begins", () => {
    const steered = [start("h2", "human"), block(0, { type: "text", text: "be brief" }), end()];
    const events = [
      begin,
      question,
      ...say("a1", "Hi!"),
      ...steered,
      update(human("h2", "r1", "be brief"), ai("a1", "Hi!")),
    ];
    const next = reduce(reduce(EMPTY, [...events, finish]), [begun("a1", [human("h3", "r2")])]);
    expect(next.messages.map(({ id }) => id)).toEqual(["h1", "h2", "a1", "h3"]);
  });

  it("shows the answer as it grows, and its usage at the end", () => {
    const half = reduce(EMPTY, [begin, question, ...say("a1", "Hi!").slice(0, 4)]);
    expect(turnsOf(half)[0]?.answer).toEqual({ id: "a1", text: "Hi", streaming: true });
    const saved = update(
      ai("a1", "Hi!", { usage_metadata: { input_tokens: 10, output_tokens: 2, total_tokens: 12 } }),
    );
    const whole = reduce(EMPTY, [begin, question, ...say("a1", "Hi!"), saved, finish]);
    expect(turnsOf(whole)[0]).toMatchObject({
      answer: { text: "Hi!", streaming: false },
      state: "done",
      usage: { total: 12 },
    });
  });

  it("tells thinking, calls with their live output, and results apart", () => {
    const calling = [
      begin,
      question,
      start("a1"),
      block(0, { type: "reasoning", reasoning: "" }),
      delta(0, { type: "reasoning-delta", reasoning: "hmm" }),
      block(1, { type: "tool_call_chunk", id: "c1", name: "bash", args: "" }),
      delta(1, { type: "tool-call-delta", args: '{"comm' }),
    ];
    const writing = turnsOf(reduce(EMPTY, calling))[0]!;
    expect(writing.steps).toMatchObject([
      { kind: "thinking", text: "hmm", streaming: false },
      { kind: "tool", call: { status: "writing" } },
    ]);
    const called = [
      ...calling,
      event("messages", {
        event: "content-block-finish",
        index: 1,
        content: { type: "tool_call", id: "c1", name: "bash", args: { command: "ls" } },
      }),
      end(),
      event("custom", {
        name: "tool_output",
        payload: { type: "tool_output", tool_call_id: "c1", text: "a\n" },
      }),
      event("custom", {
        name: "tool_output",
        payload: { type: "tool_output", tool_call_id: "c1", text: "b\n" },
      }),
    ];
    const working = turnsOf(reduce(EMPTY, called))[0]!;
    expect(working.steps[1]).toMatchObject({
      call: { args: { command: "ls" }, status: "running", output: "a\nb\n" },
    });
    const result = [
      start("t1", "tool", { tool_call_id: "c1", name: "bash" }),
      block(0, { type: "text", text: "a\nb" }),
      end(),
    ];
    const saved = [
      update(
        ai("a1", "", {
          tool_calls: [{ id: "c1", name: "bash", args: { command: "ls" } }],
          additional_kwargs: { reasoning_content: "hmm" },
        }),
      ),
      ...result,
      update({ id: "t1", type: "tool", content: "a\nb", tool_call_id: "c1", name: "bash" }),
      ...say("a2", "Two files."),
      update(ai("a2", "Two files.")),
    ];
    const done = turnsOf(reduce(EMPTY, [...called, ...saved, finish]))[0]!;
    expect(done.steps[1]).toMatchObject({ call: { status: "done", result: "a\nb" } });
    expect(done.answer?.text).toBe("Two files.");
  });

  it("forgets a step that a run says anew after a crash", () => {
    const state = reduce(EMPTY, [
      begin,
      question,
      ...say("a1", "half").slice(0, 4),
      event("messages", { event: "error" }),
      begin,
    ]);
    expect(turnsOf(state)[0]?.answer).toBeNull();
    expect(turnsOf(reduce(state, say("a2", "whole")))[0]?.answer?.text).toBe("whole");
  });

  it("keeps what grows when another step ends", () => {
    const state = reduce(EMPTY, [begin, question, ...say("a1", "He").slice(0, 3), update(ai("b1", "Done."))]);
    expect(state.messages.map(({ text }) => text)).toContain("H");
  });

  it("keeps half an answer in front of what the next attempt says", () => {
    const half = [begin, question, ...say("a1", "half").slice(0, 4)];
    const retry = event("custom", { payload: { type: "llm_retry", reason: "busy", message: "m is busy." } });
    const retried = reduce(EMPTY, [...half, retry]);
    expect(retried.retry).toEqual({ reason: "busy", fallback: "" });
    expect(retried.messages.map(({ id }) => id)).toEqual(["h1", "a1"]);
    const again = reduce(retried, say("a2", "whole"));
    expect(again.messages.map(({ id }) => id)).toEqual(["h1", "a1", "a2"]);
    const kept = [ai("a1", "half", { additional_kwargs: { broke_off: true } }), ai("a2", "whole")];
    const saved = reduce(again, [update(...kept), finish]);
    for (const [state, text] of [
      [again, "ha"],
      [saved, "half"],
    ] as const) {
      const [turn] = turnsOf(state);
      expect(turn?.steps).toMatchObject([{ kind: "text", text, streaming: false, brokeOff: true }]);
      expect(turn?.answer?.text).toBe("whole");
    }
    const brokeOff = reduce(retried, [update(ai("a1", "half")), finish]);
    expect(brokeOff.messages.map(({ text }) => text)).toEqual(["hello", "half"]);
    expect(reduce(EMPTY, [...half, finish]).messages.map(({ id }) => id)).toEqual(["h1"]);
  });

  it("shows what came in during a step before the answer of that step", () => {
    const state = reduce(EMPTY, [
      begin,
      question,
      ...say("a1", "Hi"),
      update(human("h2", "r1"), ai("a1", "Hi")),
    ]);
    expect(state.messages.map(({ id }) => id)).toEqual(["h1", "h2", "a1"]);
  });

  it("goes on from where a run begins, in every tab", () => {
    const before = loaded(
      { messages: [human("h1", "r1"), ai("a1", "One"), human("h2", "r2"), ai("a2", "Two")] },
      [],
      false,
    );
    const forked = reduce(before, [begin, begun("a1", [human("h3", "r3")])]);
    expect(forked.messages.map(({ id }) => id)).toEqual(["h1", "a1", "h3"]);
    const replayed = reduce(before, [begin, begun("a1", [human("h2", "r2")])]);
    expect(replayed.messages).toHaveLength(4);
  });

  it("does not show what sub-agents say as its own", () => {
    const inner = say("x", "inner").map((one) => ({
      ...one,
      params: { ...one.params, namespace: ["tools:c1"] },
    }));
    expect(reduce(EMPTY, [begin, question, ...inner]).messages).toHaveLength(1);
    const usage = { type: "token_usage", usage: { input_tokens: 7 } };
    expect(reduce(EMPTY, [begin, event("custom", usage, ["tools:c1"])]).contextUsed).toBeNull();
  });

  it("waits for a decision about what a sub-agent wants to do", () => {
    const asked = event("input.requested", { interrupt_id: "i1", payload: {} }, ["tools:c1"]);
    expect(reduce(EMPTY, [begin, question, asked]).waitingFor).toHaveLength(1);
  });

  it("waits for a decision, and no longer once it was made anywhere", () => {
    const asked = reduce(EMPTY, [
      begin,
      question,
      event("input.requested", { interrupt_id: "i1", payload: { a: 1 } }),
      finish,
    ]);
    expect(asked.waitingFor).toEqual([{ id: "i1", value: { a: 1 } }]);
    expect(turnsOf(asked)[0]?.state).toBe("waiting");
    expect(reduce(asked, [event("input.answered", { interrupt_ids: ["i1"] })]).waitingFor).toEqual([]);
  });
});

describe("a thread that was loaded in the middle of a run", () => {
  const values = {
    messages: [human("h1", "r1"), ai("a1", "First.", { tool_calls: [{ id: "c1", name: "bash", args: {} }] })],
  };

  it("does not write anew what it has, and adds what it has not", () => {
    const state = reduce(loaded(values, [], true), [
      begin,
      ...say("a1", "Fi").slice(0, 3),
      end(),
      ...say("a2", "Second."),
    ]);
    expect(state.messages.map(({ text }) => text)).toEqual(["hello", "First.", "Second."]);
  });

  it("keeps the identity of messages that an update repeats", () => {
    const before = loaded(values, [], true);
    const after = reduce(before, [update(...structuredClone(values.messages))]);
    expect(after.messages[1]).toBe(before.messages[1]);
  });
});

describe("turns", () => {
  const two = loaded(
    { messages: [human("h1", "r1"), ai("a1", "One"), human("h2", "r2"), ai("a2", "Two")] },
    [],
    false,
  );

  it("begin with each question; what is said during a run steers it", () => {
    const steered = loaded(
      { messages: [human("h1", "r1"), ai("a1", "One"), human("h2", "r1", "shorter"), ai("a2", "1")] },
      [],
      false,
    );
    expect(turnsOf(steered).map(({ steps }) => steps.map(({ kind }) => kind))).toEqual([
      ["text", "steering"],
    ]);
    expect(turnsOf(two)).toHaveLength(2);
  });

  it("stay the same objects while another one grows", () => {
    const cache = new TurnCache();
    const before = cache.turns(two.messages, around(two, { running: true }));
    const grown = reduce({ ...two, running: true }, say("a3", "More"));
    const after = cache.turns(grown.messages, around(grown));
    expect(after[0]).toBe(before[0]);
    expect(after[1]).not.toBe(before[1]);
  });

  it("end where an edited message was", () => {
    expect(cutBefore(two, "h2").messages.map(({ id }) => id)).toEqual(["h1", "a1"]);
  });

  it("say why a run failed", () => {
    const facts = {
      runId: "r2",
      lastRunId: "r2",
      stopReason: null,
      verification: null,
      cost: null,
      input: 0,
      output: 0,
      startedAt: null,
      endedAt: null,
    };
    const runs = new Map([["r2", { ...facts, status: "error" as const, error: "RateLimitError: too many" }]]);
    expect(turnsOf(two, { runs })[1]).toMatchObject({
      state: "error",
      error: { name: "RateLimitError", message: "too many" },
    });
  });

  it("hold delivered files and a question of the agent", () => {
    const calls = [
      {
        id: "c1",
        name: "present_files",
        args: { filepaths: ["/mnt/user-data/outputs/a.md", "/mnt/user-data/outputs/a.md"] },
      },
      { id: "c2", name: "ask_clarification", args: { question: "Which?", options: ["A", "B"] } },
    ];
    const results = calls.map(({ id, name }): WireMessage => ({
      id: `t${id}`,
      type: "tool",
      name,
      content: "ok",
      tool_call_id: id,
    }));
    const state = loaded(
      { messages: [human("h1", "r1"), ai("a1", "", { tool_calls: calls }), ...results] },
      [],
      false,
    );
    expect(turnsOf(state)[0]).toMatchObject({
      presented: ["/mnt/user-data/outputs/a.md"],
      clarification: { question: "Which?", options: [{ label: "A" }, { label: "B" }], answer: null },
    });
  });
});
