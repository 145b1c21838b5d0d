/** From the messages of a thread to what is shown: one turn for each question of the person. Pure. */
import type { FileRef, Message, Recalled, Sending, TokenUsage, ToolCall, ToolStatus } from "./message";
import { marksIn, type SummaryMark } from "./summaries";
import { clarificationIn, type Clarification } from "./options";

export type Part =
  | { kind: "thinking"; id: string; text: string; streaming: boolean }
  /** `brokeOff`: the model was asked again behind it. */
  | { kind: "text"; id: string; text: string; streaming: boolean; brokeOff?: boolean }
  | { kind: "tool"; id: string; call: ToolCall }
  /** A message of the person during the run. */
  | { kind: "steering"; id: string; text: string };

export interface Question {
  id: string;
  text: string;
  files: FileRef[];
  images: string[];
  sending: Sending;
}

/** Evidence of an answer; there is none if it claims nothing. */
export type Verification = "verified" | "observed" | "claimed" | "contradicted";

export type StopReason = "length" | "content_filter" | "loop";

export interface Turn {
  /** Of the person's message; "start" for what came before the first. */
  id: string;
  question: Question | null;
  steps: Part[];
  /** The text after the last step. */
  answer: { id: string; text: string; streaming: boolean } | null;
  /** Paths of delivered files. */
  presented: string[];
  clarification: Clarification | null;
  usage: TokenUsage | null;
  verification: Verification | null;
  runId: string | null;
  /** Of the run that ended it: its evidence is that of the whole turn. */
  lastRunId: string | null;
  state: "running" | "done" | "stopped" | "error" | "waiting";
  error: { name: string; message: string } | null;
  /** Reason for an early end without an error. */
  stopReason: StopReason | null;
  startedAt: string | null;
  endedAt: string | null;
  branch: { index: number; count: number } | null;
  marks: readonly SummaryMark[];
  recalled: Recalled | null;
}

export interface Todo {
  content: string;
  status: "pending" | "in_progress" | "waiting" | "completed";
}

/** Facts of a run besides its messages. */
export interface RunFacts {
  runId: string;
  /** Of the run that went on with it last, after an answer to an interrupt. */
  lastRunId: string;
  status: "pending" | "running" | "success" | "error" | "interrupted" | "timeout";
  stopReason: string | null;
  error: string | null;
  verification: Verification | null;
  cost: number | null;
  input: number;
  output: number;
  startedAt: string | null;
  endedAt: string | null;
}

export interface Surroundings {
  running: boolean;
  /** Ids of messages that still grow. */
  growing: ReadonlySet<string>;
  /** By call: what it has written so far. */
  outputs: Readonly<Record<string, string>>;
  /** The thread waits for a decision of the person. */
  waiting: boolean;
  /** Ids of these calls, where they are known. */
  waitingCalls: ReadonlySet<string>;
  runs: ReadonlyMap<string, RunFacts>;
  branches: ReadonlyMap<string, { index: number; count: number }>;
  marks: readonly SummaryMark[];
}

/** The turns in order; the last one is the running one while there is one. */
export function toTurns(messages: readonly Message[], around: Surroundings): Turn[] {
  return new TurnCache().turns(messages, around);
}

/**
 * As {@link toTurns}; turns that have not changed since the last call are the same objects, and are not rendered
 * again.
 */
export class TurnCache {
  private before = new Map<string, { group: readonly Message[]; depends: readonly unknown[]; turn: Turn }>();

  turns(messages: readonly Message[], around: Surroundings): Turn[] {
    const groups = groupsOf(messages);
    const entries = groups.map((group, i) => {
      const last = i === groups.length - 1;
      const [first] = group;
      const next = groups[i + 1]?.[0];
      const branch = first && around.branches.get(first.id);
      const active = last && around.running;
      const waiting = last && around.waiting;
      const marks = marksIn(group, around.marks);
      const facts = first?.runId ? around.runs.get(first.runId) : undefined;
      const depends = [
        last,
        next?.text,
        active,
        waiting,
        last && around.waitingCalls,
        facts,
        branch?.index,
        branch?.count,
        marks.length,
        ...marks,
        ...(active ? [around.outputs, around.growing] : []),
      ];
      const known = first && this.before.get(first.id);
      if (known && sameItems(known.group, group) && sameItems(known.depends, depends)) return known;
      return { group, depends, turn: turnOf(group, next, last, around) };
    });
    this.before = new Map(entries.map((entry) => [entry.group[0]?.id ?? "", entry]));
    return entries.map(({ turn }) => turn);
  }
}

const sameItems = (one: readonly unknown[], other: readonly unknown[]) =>
  one.length === other.length && one.every((item, i) => item === other[i]);

function groupsOf(messages: readonly Message[]): Message[][] {
  const groups: Message[][] = [];
  for (const message of messages) {
    const group = groups.at(-1);
    if (!group || (message.type === "human" && beginsTurn(message, group))) groups.push([message]);
    else group.push(message);
  }
  return groups;
}

/** A message of the run that is on its way steers it; every other one asks something new. */
function beginsTurn(message: Message, group: readonly Message[]): boolean {
  const run = group[0]?.runId;
  return message.sending !== false || !message.runId || message.runId !== run;
}

function stopReasonOf(facts: RunFacts | undefined): StopReason | null {
  const reason = facts?.stopReason;
  return reason === "length" || reason === "content_filter" || reason === "loop" ? reason : null;
}

function turnOf(
  group: readonly Message[],
  next: Message | undefined,
  last: boolean,
  around: Surroundings,
): Turn {
  const first = group[0];
  const question = first?.type === "human" ? first : null;
  const runId = question?.runId ?? null;
  const facts = runId ? around.runs.get(runId) : undefined;
  const active = last && around.running;
  const parts = partsOf(question ? group.slice(1) : group, active, last, around);
  const ending = parts.at(-1)?.kind === "text" ? parts.pop() : undefined;
  const calls = parts.flatMap((part) => (part.kind === "tool" ? [part.call] : []));
  const state = stateOf(active, last && around.waiting, facts);
  return {
    id: question?.id ?? "start",
    question: question && {
      id: question.id,
      text: question.text,
      files: question.files,
      images: question.images,
      sending: question.sending,
    },
    steps: parts,
    answer:
      ending?.kind === "text" ? { id: ending.id, text: ending.text, streaming: ending.streaming } : null,
    presented: presentedIn(calls),
    clarification: clarificationIn(calls, next?.text ?? null),
    usage: usageOf(group, facts),
    verification: facts?.verification ?? null,
    runId,
    lastRunId: facts?.lastRunId ?? runId,
    state,
    error: state === "error" ? errorOf(facts) : null,
    stopReason: state === "done" ? stopReasonOf(facts) : null,
    startedAt: facts?.startedAt ?? null,
    endedAt: facts?.endedAt ?? null,
    branch: (question && around.branches.get(question.id)) ?? null,
    marks: marksIn(group, around.marks),
    recalled: question?.recalled ?? null,
  };
}

function partsOf(messages: readonly Message[], active: boolean, last: boolean, around: Surroundings): Part[] {
  const results = new Map(messages.flatMap((message) => (message.callId ? [[message.callId, message]] : [])));
  const parts: Part[] = [];
  for (const message of messages) {
    if (message.type === "human") parts.push({ kind: "steering", id: message.id, text: message.text });
    if (message.type !== "ai") continue;
    const growing = active && around.growing.has(message.id);
    const { id, thinking, text, calls, brokeOff } = message;
    if (thinking) {
      parts.push({
        kind: "thinking",
        id: `${id}:thinking`,
        text: thinking,
        streaming: growing && !text && !calls.length,
      });
    }
    if (text.trim())
      parts.push({
        kind: "text",
        id,
        text,
        streaming: growing && !calls.length,
        ...(brokeOff && { brokeOff }),
      });
    for (const call of calls) {
      const result = results.get(call.id);
      const decision = result?.decision;
      // The person went on without deciding about it. The thread holds that, too, but no event tells of it.
      const isLeft = !result && !last;
      const cause = isLeft ? { code: "rejected", detail: "" } : result?.cause;
      const status = result
        ? result.failed
          ? "error"
          : "done"
        : around.waitingCalls.has(call.id)
          ? "waiting"
          : isLeft
            ? "error"
            : unanswered(growing, active, last && around.waiting);
      const output = around.outputs[call.id] ?? "";
      const tool = {
        ...call,
        args: decision?.args ?? call.args,
        ...(decision && { decision: decision.type }),
        status,
        result: decision?.message ?? result?.text ?? "",
        ...(cause && { cause }),
        images: result?.images ?? [],
        output,
      } as const;
      parts.push({ kind: "tool", id: call.id, call: tool });
    }
  }
  return parts;
}

function unanswered(growing: boolean, active: boolean, waiting: boolean): ToolStatus {
  if (!active) return waiting ? "waiting" : "stopped";
  return growing ? "writing" : "running";
}

function stateOf(active: boolean, waiting: boolean, facts: RunFacts | undefined): Turn["state"] {
  if (active) return "running";
  if (waiting) return "waiting";
  if (facts?.status === "error" || facts?.status === "timeout") return "error";
  return facts?.status === "interrupted" ? "stopped" : "done";
}

function errorOf(facts: RunFacts | undefined): Turn["error"] {
  const text = facts?.error ?? "";
  const name = /^(\w+(?:Error|Exception|Timeout)): /.exec(text)?.[1];
  if (name) return { name, message: text.slice(name.length + 2) };
  return { name: facts?.status === "timeout" ? "Timeout" : (facts?.stopReason ?? "Error"), message: text };
}

function presentedIn(calls: readonly ToolCall[]): string[] {
  const paths = calls
    .filter((call) => call.name === "present_files" && call.status === "done")
    .flatMap((call) => call.args.filepaths)
    .filter((path): path is string => typeof path === "string");
  return [...new Set(paths)];
}

/** As the server counted it; while the run is on its way, what its messages say. */
function usageOf(group: readonly Message[], facts: RunFacts | undefined): TokenUsage | null {
  if (facts?.endedAt && facts.input + facts.output > 0) {
    return { input: facts.input, output: facts.output, total: facts.input + facts.output, cost: facts.cost };
  }
  const told = group.flatMap((message) => (message.usage ? [message.usage] : []));
  if (!told.length) return null;
  const sum = (key: "input" | "output" | "total") => told.reduce((all, usage) => all + usage[key], 0);
  return { input: sum("input"), output: sum("output"), total: sum("total"), cost: null };
}
