"use client";
import { useQuery } from "@tanstack/react-query";
import { useSyncExternalStore } from "react";
import { useSession, type Session, type ToolCall } from "@/features/chat";
import { threadApi, type Task } from "@/lib/api";
import { http } from "@/lib/http";
import { keys } from "@/lib/keys";
import { storeOf, type Heard } from "./task-store";

export type Status = Task["status"] | "preparing" | "waiting" | "deferred";

/** A sub-agent as it is shown. */
export interface ShownTask {
  id: string;
  description: string;
  type: string;
  status: Status;
  background: boolean;
  text: string;
  error: string;
  files: readonly string[];
  tokens: number;
  cost: number | null;
  /** Duration in seconds; 0 if it is unknown or still running. */
  seconds: number;
  startedAt: number | null;
  /** Current activity. */
  doing: Heard["calls"][number] | null;
}

/** Those that these calls began, in their order. */
export function useTasks(calls: readonly ToolCall[]): ShownTask[] {
  const session = useSession();
  const store = storeOf(session);
  const heard = useSyncExternalStore(store.subscribe, store.getFacts, store.getFacts);
  const { threadId } = session;
  const unknown = calls.some((call) => call.status !== "writing" && !isDeferred(call) && !heard.has(call.id));
  const listed = useQuery({
    queryKey: keys.tasks(threadId ?? ""),
    queryFn: () => http.get<Task[]>(threadApi(threadId!, "/tasks")),
    enabled: threadId !== null && unknown,
  });
  return calls.map((call) => {
    const known = listed.data?.find((task) => task.task_id === call.id);
    return shown(call, { ...known, ...heard.get(call.id) }, session);
  });
}

/** All that the agent asked for in this conversation, as it stands. */
export const taskCalls = (turns: Session["turns"]): ToolCall[] =>
  turns.flatMap(({ steps }) =>
    steps.flatMap((part) => (part.kind === "tool" && part.call.name === "task" ? [part.call] : [])),
  );

function shown(call: ToolCall, facts: Partial<Heard>, session: Session): ShownTask {
  const status = statusOf(call, facts, session);
  const works = status === "running" || status === "waiting";
  return {
    id: call.id,
    description: facts.description || text(call.args.description) || firstLine(text(call.args.prompt)),
    type: facts.subagent_type || text(call.args.subagent_type),
    status,
    background: call.args.background === true,
    text: facts.text ?? "",
    error: facts.error || (facts.status ? "" : call.status === "error" ? call.result : ""),
    files: (facts.files ?? []).map(({ path }) => String(path)),
    tokens: facts.tokens ?? 0,
    cost: facts.cost ?? null,
    seconds: works ? 0 : (facts.seconds ?? 0),
    startedAt: works ? (facts.startedAt ?? null) : null,
    doing: (works && facts.calls?.at(-1)) || null,
  };
}

function statusOf(call: ToolCall, facts: Partial<Heard>, { running, interrupts }: Session): Status {
  if (isDeferred(call)) return "deferred";
  if (call.status === "writing") return "preparing";
  if (facts.status && facts.status !== "running") return facts.status;
  const asked = new Set(interrupts.flatMap(({ calls }) => calls.map(({ id }) => id)));
  // A run that has stopped for a decision does so for those that have no result.
  if (call.status === "waiting" || (!running && interrupts.length > 0)) return "waiting";
  if (facts.calls?.some(({ id }) => asked.has(id ?? null))) return "waiting";
  if (facts.status) return "running";
  return ({ done: "completed", error: "failed", stopped: "cancelled", running: "preparing" } as const)[
    call.status
  ];
}

/** There were too many at once. */
const isDeferred = (call: ToolCall) => call.result.startsWith("Error: deferred: ");

const text = (value: unknown) => (typeof value === "string" ? value : "");
const firstLine = (prompt: string) => prompt.trimStart().split("\n", 1)[0]!.slice(0, 200);
