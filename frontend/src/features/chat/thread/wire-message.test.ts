import { expect, test } from "vitest";
import { said } from "./wire-message";

const calls = (name: string, args: Record<string, unknown>) =>
  said({ type: "ai", content: "", tool_calls: [{ id: "c", name, args }] })?.calls;

test("a call by call_tool is shown as the call of its tool", () => {
  const args = { text: "hi" };
  expect(calls("call_tool", { name: "s_echo", arguments: args })).toEqual([
    { id: "c", name: "s_echo", args },
  ]);
  expect(calls("call_tool", { name: "s_echo", arguments: "[1]" })).toEqual([
    { id: "c", name: "s_echo", args: {} },
  ]);
  expect(calls("call_tool", {})).toEqual([{ id: "c", name: "call_tool", args: {} }]);
  expect(calls("bash", { name: "x" })).toEqual([{ id: "c", name: "bash", args: { name: "x" } }]);
});
