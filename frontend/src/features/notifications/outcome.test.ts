import { expect, test } from "vitest";
import type { Turn } from "@/features/chat";
import { bodyOf, outcomeOf } from "./outcome";

const turn = (patch: Partial<Turn>): Turn => ({
  id: "t",
  question: null,
  steps: [],
  answer: null,
  presented: [],
  clarification: null,
  usage: null,
  runId: null,
  lastRunId: null,
  state: "done",
  error: null,
  stopReason: null,
  verification: null,
  startedAt: null,
  endedAt: null,
  branch: null,
  marks: [],
  recalled: null,
  ...patch,
});
const asking = { callId: "c", question: "Which one?", context: "", kind: "", options: [], answer: null };

test("a person is called for an end, a question or a failure, but not for what they stopped", () => {
  const interrupt = { id: "i", value: null, problem: null, calls: [] };
  expect(outcomeOf(turn({}), [])).toBe("done");
  expect(outcomeOf(turn({ state: "waiting" }), [interrupt])).toBe("waiting");
  expect(outcomeOf(turn({ clarification: asking }), [])).toBe("waiting");
  expect(outcomeOf(turn({ state: "error" }), [])).toBe("failed");
  expect(outcomeOf(turn({ state: "stopped" }), [])).toBeNull();
  expect(outcomeOf(undefined, [])).toBeNull();
});

test("a notice says the beginning in plain words", () => {
  const answer = { id: "a", streaming: false, text: `# Done\n\n**All** is \`there\`. ${"🦌".repeat(300)}` };
  const body = bodyOf(turn({ answer }), "done");
  expect(body.startsWith("Done All is there. 🦌")).toBe(true);
  expect(Array.from(body)).toHaveLength(200);
  expect(bodyOf(turn({ clarification: asking }), "waiting")).toBe("Which one?");
});
