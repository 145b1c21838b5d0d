/** Conversions from the gateway's data about a thread to the views of the conversation. Pure. */
import type { Run, TurnRecord } from "@/lib/api";
import type { Answerer } from "./thread-session";
import type { WaitingFor } from "./thread-state";
import type { Message } from "./message";
import type { RunFacts } from "./turns";

export type Grant = "thread" | "always";

export type Decision = "approve" | "edit" | "reject" | "respond";

export interface Interrupt {
  id: string;
  value: unknown;
  /** Reason for which an earlier answer could not be followed. */
  problem: string | null;
  /** The calls that wait for a decision, in the order in which to decide; none if the value has another shape. */
  calls: {
    id: string | null;
    name: string;
    args: Record<string, unknown>;
    description: string;
    /** The code of the description; empty if it has none. */
    reason: string;
    allowed: Decision[];
    /** For how long an approval may hold, besides once. */
    grants: Grant[];
    /** Sources of the foreign text that the thread holds. */
    sources: Source[];
  }[];
}

export interface Source {
  kind:
    | "page"
    | "server"
    | "tool"
    | "upload"
    | "client"
    | "channel"
    | "chat"
    | "acp"
    | "mount"
    | "project"
    | "command"
    | "unjudged";
  name: string;
}

const ALL: Decision[] = ["approve", "edit", "reject", "respond"];

/** Reads what LangChain's human-in-the-loop middleware asks. */
export function interruptOf({ id, value }: WaitingFor): Interrupt {
  const asked = (typeof value === "object" && value ? value : {}) as {
    action_requests?: { name: string; args?: Record<string, unknown>; description?: string }[];
    error?: unknown;
    reason?: string;
    tool_call_id?: string;
    sources?: Source[];
    review_configs?: { action_name: string; allowed_decisions?: Decision[]; grants?: Grant[] }[];
  };
  const calls = (asked.action_requests ?? []).map((action) => {
    const config = asked.review_configs?.find((review) => review.action_name === action.name);
    return {
      id: asked.tool_call_id ?? null,
      name: action.name,
      args: action.args ?? {},
      description: action.description ?? "",
      reason: asked.reason ?? "",
      allowed: config?.allowed_decisions ?? ALL,
      grants: config?.grants ?? [],
      sources: Array.isArray(asked.sources) ? asked.sources : [],
    };
  });
  return { id, value, problem: typeof asked.error === "string" ? asked.error : null, calls };
}

/** Ids of the calls that wait for a decision, where the interrupts name them. */
export const callsOf = (waitingFor: readonly WaitingFor[]): ReadonlySet<string> =>
  new Set(
    waitingFor.flatMap(({ value }) => {
      const id = (value as { tool_call_id?: unknown } | null)?.tool_call_id;
      return typeof id === "string" ? [id] : [];
    }),
  );

/** By id of the run that a question began; what went on with it after an answer to an interrupt is added to it. */
export function factsOf(runs: readonly Run[] | undefined): ReadonlyMap<string, RunFacts> {
  const found = new Map<string, RunFacts>();
  let begun: RunFacts | undefined;
  for (const run of [...(runs ?? [])].reverse()) {
    const facts = factOf(run);
    const goesOn = begun && run.kwargs.input == null;
    begun = goesOn && begun ? joined(begun, facts) : facts;
    found.set(begun.runId, begun);
  }
  return found;
}

const joined = (one: RunFacts, next: RunFacts): RunFacts => ({
  ...next,
  runId: one.runId,
  startedAt: one.startedAt,
  input: one.input + next.input,
  output: one.output + next.output,
  cost: one.cost === null && next.cost === null ? null : (one.cost ?? 0) + (next.cost ?? 0),
});

const factOf = (run: Run): RunFacts => ({
  runId: run.run_id,
  lastRunId: run.run_id,
  status: run.status as RunFacts["status"],
  stopReason: run.stop_reason,
  error: run.error,
  verification: run.verification as RunFacts["verification"],
  cost: run.cost,
  input: run.total_input_tokens,
  output: run.total_output_tokens,
  startedAt: run.started_at,
  endedAt: run.ended_at,
});

/** All versions of the message behind the same predecessor, in order of time; only those that can be restored. */
export function waysFrom(records: readonly TurnRecord[] | undefined, messageId: string): TurnRecord[] {
  const own = records?.find((record) => record.message_id === messageId);
  if (!own || own.checkpoint_id === null) return [];
  return (records ?? []).filter(
    (record) => record.checkpoint_id !== null && record.parent_message_id === own.parent_message_id,
  );
}

/** By message of the thread as it stands: which of how many ways it is. */
export function branchesOf(
  records: readonly TurnRecord[] | undefined,
  messages: readonly Message[],
): ReadonlyMap<string, { index: number; count: number }> {
  const found = new Map<string, { index: number; count: number }>();
  for (const { id, type } of messages) {
    const ways = type === "human" ? waysFrom(records, id) : [];
    const index = ways.findIndex((way) => way.message_id === id);
    if (ways.length > 1 && index >= 0) found.set(id, { index, count: ways.length });
  }
  return found;
}

/** The agent of the thread whose newest run is this one. */
export function answererOf(run: Run | undefined): Answerer | null {
  if (!run?.assistant_id) return null;
  const context = run.kwargs.context as { is_bootstrap?: unknown; agent_name?: unknown } | undefined;
  const setUp = context?.is_bootstrap === true;
  const name = run.agent ?? (setUp ? context?.agent_name : null);
  const agent = typeof name === "string" ? { name, ...(setUp && { setUp }) } : null;
  return { assistantId: run.assistant_id, agent };
}
