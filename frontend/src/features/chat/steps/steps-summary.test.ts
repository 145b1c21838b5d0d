import { describe, expect, it } from "vitest";
import {
  countFailed,
  countNotMade,
  countWork,
  hasFailed,
  segmentsOf,
  splitRunning,
  waitsItsTurn,
} from "./steps-summary";
import { callWith } from "../thread/test-session";
import type { ToolCall } from "../thread/message";
import type { Part } from "../thread/turns";

const tool = (id: string, call: Partial<ToolCall>): Part => ({
  kind: "tool",
  id,
  call: callWith({ id, ...call }),
});
const thinking = (id: string, streaming = false): Part => ({ kind: "thinking", id, text: "hm", streaming });
const steering: Part = { kind: "steering", id: "s", text: "In French" };
const ids = (parts: Part[]) => parts.map((part) => part.id);

describe("countWork", () => {
  it("counts in the order of first times, a file once however often it is read", () => {
    const parts = [
      thinking("t"),
      tool("1", { name: "read_file", args: { path: "/a" } }),
      tool("2", { name: "bash" }),
      tool("3", { name: "read_file", args: { path: "/b" } }),
      tool("4", { name: "read_file", args: { path: "/a", start_line: 10 } }),
      tool("5", { name: "some_mcp__tool" }),
    ];
    expect(countWork(parts)).toEqual([
      { work: "read", count: 2 },
      { work: "command", count: 1 },
      { work: "other", count: 1 },
    ]);
  });
});

it("what waits for a decision was not done, and its reason stands beside it", () => {
  const parts = [
    tool("1", { name: "read_file", args: { path: "/a" } }),
    { kind: "text", id: "why", text: "The old one is in the way.", streaming: false } as const,
    tool("2", { status: "waiting" }),
    tool("3", { status: "waiting" }),
  ];
  expect(countWork(parts)).toEqual([{ work: "read", count: 1 }]);
  expect(ids(splitRunning(parts).current)).toEqual(["why", "2", "3"]);
});

it("what was not allowed was not done, and has not failed", () => {
  const rejected = { code: "rejected", detail: "" };
  const parts = [
    tool("1", {}),
    tool("2", { status: "error", result: "Error: the user rejected this call", cause: rejected }),
    tool("3", { decision: "respond", result: "Error: I know already" }),
  ];
  expect(countWork(parts)).toEqual([{ work: "command", count: 1 }]);
  expect([countFailed(parts), countNotMade(parts)]).toEqual([0, 2]);
});

describe("hasFailed", () => {
  it.each([
    ["a tool that says so in words", { name: "read_file", result: "Error: File not found: /x" }, true],
    ["a status", { name: "x", status: "error", result: "boom" }, true],
    ["an exit code", { result: "oops\nExit Code: 2" }, true],
    ["an exit code with a warning behind it", { result: "oops\nExit Code: 2\n\n⚠️ Warning: note" }, true],
    ["a command that was stopped", { result: "tick\nError: the command was stopped after 5 seconds." }, true],
    ["a file that speaks of errors", { name: "read_file", result: "1\nError: not mine" }, false],
    ["a command that prints the word", { result: "log\nError: handled" }, false],
    [
      "a call that the person stopped",
      { status: "error", result: "Not finished: the user stopped the run." },
      false,
    ],
    ["a call that was broken off", { status: "stopped", result: "" }, false],
  ] as [string, Partial<ToolCall>, boolean][])("%s", (_name, call, failed) => {
    expect(hasFailed(callWith(call))).toBe(failed);
    expect(countFailed([tool("1", call)])).toBe(failed ? 1 : 0);
  });
});

describe("what is folded while the agent works", () => {
  it("keeps everything open from the first step that is not over", () => {
    const parts = [thinking("t"), tool("1", {}), tool("2", { status: "running" }), tool("3", {})];
    expect(ids(splitRunning(parts).former)).toEqual(["t", "1"]);
    expect(ids(splitRunning(parts).current)).toEqual(["2", "3"]);
  });

  it("keeps the last step open between two, so that nothing jumps", () => {
    expect(ids(splitRunning([thinking("t"), tool("1", {})]).current)).toEqual(["1"]);
  });

  it("sets sub-agents apart, and many of them in one place", () => {
    const task = (id: string) => tool(id, { name: "task" });
    const shown = (parts: Part[]) =>
      segmentsOf(parts).map((one) => (one.kind === "tasks" ? one.calls.map(({ id }) => id) : one.kind));
    const few = [tool("1", {}), task("a"), task("b"), thinking("t"), task("c")];
    expect(shown(few)).toEqual(["work", ["a", "b"], "work", ["c"]]);
    expect(shown([...few, tool("2", {}), task("d")])).toEqual(["work", ["a", "b", "c", "d"], "work"]);
  });

  it("never hides what the person said in between", () => {
    const segments = segmentsOf([tool("1", {}), steering, tool("2", {}), thinking("t")]);
    expect(
      segments.map((one) => (one.kind === "work" ? ids(one.parts) : one.kind === "steering" && one.text)),
    ).toEqual([["1"], "In French", ["2", "t"]]);
  });
});

it("of calls that are made one after the other all wait but the one that runs, and reads never do", () => {
  const running = (id: string, name: string, output = "") => tool(id, { name, status: "running", output });
  const waiting = (parts: Part[]) => ids(parts.filter((part) => waitsItsTurn(part, parts)));
  expect(waiting([running("1", "bash"), running("2", "grep"), running("3", "write_file")])).toEqual(["3"]);
  expect(waiting([tool("1", {}), running("2", "bash"), running("3", "bash", "begun")])).toEqual([]);
  expect(waiting([running("1", "task"), running("2", "task")])).toEqual([]);
});
