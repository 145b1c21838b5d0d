/** One-line summary of a row of steps, and the choice of those that are shown while the agent works. */
import type { ToolCall } from "../thread/message";
import type { Part } from "../thread/turns";

/** Kinds of work, as keys of the texts `chat.did.*`. */
export type Work =
  | "command"
  | "read"
  | "list"
  | "search"
  | "write"
  | "edit"
  | "web"
  | "fetch"
  | "image"
  | "plan"
  | "present"
  | "ask"
  | "other";

const WORK: Record<string, Work> = {
  bash: "command",
  read_process: "command",
  kill_process: "command",
  read_file: "read",
  ls: "list",
  glob: "search",
  grep: "search",
  write_file: "write",
  str_replace: "edit",
  web_search: "web",
  image_search: "web",
  web_fetch: "fetch",
  web_capture: "fetch",
  view_image: "image",
  write_todos: "plan",
  present_files: "present",
  ask_clarification: "ask",
};

export const workOf = (name: string): Work => WORK[name] ?? "other";

export interface Count {
  work: Work;
  count: number;
}

/** Number of finished calls for each kind of work, in order of their first use. Each file counts once. */
export function countWork(parts: Part[]): Count[] {
  const seen = new Map<Work, Set<string>>();
  for (const part of parts) {
    if (part.kind !== "tool" || isActive(part) || !wasMade(part.call)) continue;
    const work = workOf(part.call.name);
    const path = part.call.args["path"];
    const isFile = (work === "read" || work === "write" || work === "edit") && typeof path === "string";
    seen.set(work, (seen.get(work) ?? new Set()).add(isFile ? path : part.id));
  }
  return [...seen].map(([work, ids]) => ({ work, count: ids.size }));
}

export const countFailed = (parts: Part[]) =>
  parts.filter((part) => part.kind === "tool" && wasMade(part.call) && hasFailed(part.call)).length;

/** Calls that a person or a rule did not allow, or that the run ended before. */
export const countNotMade = (parts: Part[]) =>
  parts.filter((part) => part.kind === "tool" && !isActive(part) && !wasMade(part.call)).length;

/** Tools also tell of failures in words, with an ordinary status. */
export const hasFailed = (call: ToolCall) =>
  (call.status === "error" && !wasStopped(call) && !wasRefused(call)) ||
  (call.status === "done" && call.decision !== "respond" && (ERROR.test(call.result) || exitCode(call) > 0));

/** The person ended it, or the run ended before it: no failure of the tool. */
export const wasStopped = (call: ToolCall) =>
  call.status === "stopped" || (call.status === "error" && call.result.startsWith("Not finished: "));

/** The person did not allow it. */
export const wasRefused = (call: ToolCall) =>
  call.status === "error" &&
  (call.cause?.code === "rejected" || call.result.startsWith("User rejected the tool call"));

const wasMade = (call: ToolCall) =>
  !wasRefused(call) &&
  call.decision !== "respond" &&
  call.cause?.code !== "denied" &&
  call.cause?.code !== "not_made";

/** At the beginning, or at the end of what a command printed before it was stopped. */
const ERROR = /^Error: |\nError: the command was stopped/;

/** Of a command; 0 if it tells none. */
export function exitCode(call: ToolCall): number {
  if (call.name !== "bash") return 0;
  return Number([...call.result.matchAll(/^Exit Code: (\d+)$/gm)].at(-1)?.[1] ?? 0);
}

const isTask = (part: Part): part is Extract<Part, { kind: "tool" }> =>
  part.kind === "tool" && part.call.name === "task";

export function isActive(part: Part): boolean {
  if (part.kind === "tool") return ["writing", "running", "waiting"].includes(part.call.status);
  return part.kind !== "steering" && part.streaming;
}

/** Commands and changes of files are made one after the other. */
const IN_TURN = /^(bash|write_file|str_replace)$/;

/** True if the call starts only after another one that is still running. */
export function waitsItsTurn(part: Part, parts: Part[]): boolean {
  const isRunning = (one: Part) =>
    one.kind === "tool" && one.call.status === "running" && IN_TURN.test(one.call.name);
  return part.kind === "tool" && !part.call.output && isRunning(part) && parts.find(isRunning) !== part;
}

export type Segment =
  | { kind: "work"; id: string; parts: Part[] }
  | { kind: "steering"; id: string; text: string }
  | { kind: "tasks"; id: string; calls: ToolCall[] };

/** From so many sub-agents on, those of a turn stand in one place. */
const MANY = 4;

/** Consecutive steps, split at messages of the person and at groups of sub-agents. */
export function segmentsOf(steps: Part[]): Segment[] {
  const segments: Segment[] = [];
  const together = steps.filter(isTask).length >= MANY;
  for (const part of steps) {
    const last = segments.at(-1);
    if (part.kind === "steering") segments.push({ kind: "steering", id: part.id, text: part.text });
    else if (isTask(part)) {
      const group = together ? segments.find((one) => one.kind === "tasks") : last;
      if (group?.kind === "tasks") group.calls.push(part.call);
      else segments.push({ kind: "tasks", id: part.id, calls: [part.call] });
    } else if (last?.kind === "work") last.parts.push(part);
    else segments.push({ kind: "work", id: part.id, parts: [part] });
  }
  return segments;
}

/**
 * Split into folded and open steps while the agent works: open are all from the first unfinished one on, at
 * least the last.
 */
export function splitRunning(parts: Part[]): { former: Part[]; current: Part[] } {
  const first = parts.findIndex(isActive);
  let at = first === -1 ? Math.max(0, parts.length - 1) : first;
  const [reason, call] = parts.slice(Math.max(0, at - 1));
  // What the agent says before it asks for something is why.
  if (reason?.kind === "text" && call?.kind === "tool" && call.call.status === "waiting") at -= 1;
  return { former: parts.slice(0, at), current: parts.slice(at) };
}
