import { describe, expect, it } from "vitest";
import type { Run, TurnRecord } from "@/lib/api";
import { branchesOf, factsOf, interruptOf, waysFrom } from "./session-views";
import type { Message } from "./message";

const run = (run_id: string, more: Partial<Run> = {}): Run =>
  ({
    run_id,
    status: "success",
    kwargs: { input: {} },
    total_input_tokens: 10,
    total_output_tokens: 5,
    cost: 0.5,
    started_at: "2026-01-01T00:00:00Z",
    ended_at: "2026-01-01T00:00:09Z",
    stop_reason: null,
    error: null,
    ...more,
  }) as Run;
const record = (
  message_id: string,
  parent_message_id: string | null,
  checkpoint_id: string | null = "c",
): TurnRecord => ({
  message_id,
  run_id: `r-${message_id}`,
  checkpoint_id,
  created_at: "2026-01-01T00:00:00Z",
  parent_message_id,
  end_checkpoint_id: `end-${message_id}`,
});
const question = (id: string) => ({ id, type: "human" }) as Message;

describe("facts of runs", () => {
  it("belong to the question, whatever was answered on the way", () => {
    const newestFirst = [
      run("r3"),
      run("r2", { kwargs: { command: { resume: {} } } }),
      run("r1", { status: "interrupted" }),
    ];
    const facts = factsOf(newestFirst);
    expect(facts.get("r1")).toMatchObject({ status: "success", input: 20, output: 10, cost: 1 });
    expect(facts.get("r1")?.lastRunId).toBe("r2");
    expect([...facts.keys()]).toEqual(["r1", "r3"]);
  });
});

describe("branches", () => {
  const records = [
    record("a", null),
    record("b", "a"),
    record("steer", null, null),
    record("b2", "a"),
    record("c", "b2"),
  ];

  it("are what was said after the same message", () => {
    expect(waysFrom(records, "b2").map(({ message_id }) => message_id)).toEqual(["b", "b2"]);
    expect(waysFrom(records, "steer")).toEqual([]);
  });

  it("are told where there is more than one", () => {
    const found = branchesOf(records, [question("a"), question("b2"), question("c")]);
    expect([...found]).toEqual([["b2", { index: 1, count: 2 }]]);
  });
});

describe("an interrupt", () => {
  it("names the calls and what may be decided", () => {
    const value = {
      action_requests: [{ name: "bash", args: { command: "ls" }, description: "List" }],
      review_configs: [{ action_name: "bash", allowed_decisions: ["approve", "reject"] }],
    };
    expect(interruptOf({ id: "i", value }).calls).toEqual([
      {
        id: null,
        name: "bash",
        args: { command: "ls" },
        description: "List",
        allowed: ["approve", "reject"],
        grants: [],
        reason: "",
        sources: [],
      },
    ]);
  });

  it("of another shape has no calls", () => {
    expect(interruptOf({ id: "i", value: "Really?" }).calls).toEqual([]);
  });
});
