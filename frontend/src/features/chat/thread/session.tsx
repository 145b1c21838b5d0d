"use client";
import { useQuery, useQueryClient } from "@tanstack/react-query";
import {
  createContext,
  use,
  useEffect,
  useMemo,
  useState,
  useSyncExternalStore,
  type ReactNode,
} from "react";
import { useT } from "@/i18n";
import * as api from "@/lib/api";
import { ApiError, http } from "@/lib/http";
import { draftThreadId, renewDraftThread } from "@/lib/draft-thread";
import { keys } from "@/lib/keys";
import { useModels } from "@/lib/models";
import { openThread, threadPath } from "@/lib/route";
import type { AgentChoice, RunSettings } from "@/lib/run-settings";
import {
  answererOf,
  branchesOf,
  callsOf,
  factsOf,
  interruptOf,
  waysFrom,
  type Interrupt,
} from "./session-views";
import type { ChildEvents } from "./child-events";
import type { Retry } from "./thread-state";
import { ThreadSession, type Outgoing, type Phase } from "./thread-session";
import type { FileRef, Message, TokenUsage } from "./message";
import { TurnCache, type Todo, type Turn } from "./turns";
import { said, type WireMessage } from "./wire-message";

export type { Interrupt } from "./session-views";
export type { RunSettings } from "@/lib/run-settings";
export type { Outgoing } from "./thread-session";

/** A message that waits on the server until the running turn is over. */
export interface Queued {
  runId: string;
  text: string;
  files: FileRef[];
  /** `unsent`: waits until the server is reachable again; `told`: the active run reads it at its next step. */
  state: "queued" | "unsent" | "told";
}

export interface Session {
  /** null: a new conversation, nothing sent yet. */
  threadId: string | null;
  phase: Phase;
  loadError: ApiError | null;
  /** A run executes or is about to. */
  running: boolean;
  connection: "live" | "retrying";
  turns: readonly Turn[];
  todos: readonly Todo[];
  title: string | null;
  interrupts: readonly Interrupt[];
  queued: readonly Queued[];
  retrying: Retry | null;
  /** Seconds for which the model has sent nothing, from the fifteenth on. */
  silence: number | null;
  /** Tokens of the newest call's input, and how many the model can take. */
  context: { used: number; window: number | null } | null;
  usage: TokenUsage | null;
  /** The custom agent that answered last, or that is being set up here; null for the default agent or no agent yet. */
  agent: AgentChoice | null;
  childEvents: ChildEvents;
  /** Paths of all delivered files. */
  files: readonly string[];
  reload(): void;
  /** Makes the thread if need be; while a run is on its way the message waits for its end. Throws ApiError, as do all. */
  send(message: Outgoing, settings: RunSettings): Promise<void>;
  /** Reaches the run at its next step; throws ApiError 409 `not_running` if there is none. */
  steer(text: string): Promise<void>;
  stop(): Promise<void>;
  cancelQueued(runId: string): Promise<void>;
  edit(turnId: string, text: string, settings: RunSettings): Promise<void>;
  regenerate(turnId: string, settings: RunSettings): Promise<void>;
  retryTurn(turnId: string, settings: RunSettings): Promise<void>;
  showBranch(turnId: string, index: number): Promise<void>;
  respond(interruptId: string, value: unknown, settings: RunSettings): Promise<void>;
}

const Context = createContext<Session | null>(null);

/** The conversation of this page. */
export function useSession(): Session {
  const session = use(Context);
  if (!session) throw new Error("useSession() needs a <SessionProvider> around it.");
  return session;
}

export function SessionProvider({ threadId, children }: { threadId: string | null; children: ReactNode }) {
  return <Context value={useThread(threadId)}>{children}</Context>;
}

/** For tests: any session. */
export const SessionContext = Context;

function useThread(threadId: string | null): Session {
  const t = useT("common");
  const live = useThreadSession(threadId);
  useEffect(() => {
    if (threadId === draftThreadId()) renewDraftThread(); // the queued message has started
  }, [threadId]);
  const { phase, loadError, connection, thread, pending, unsent, told, exists } = useSyncExternalStore(
    live.subscribe,
    live.getSnapshot,
    live.getSnapshot,
  );
  const queries = useQueryClient();
  const enabled = exists && phase === "ready";
  // An initial value: without one a change during the first request would not cause a second request.
  const begin = <T,>(initialData: T) => ({ enabled, initialData, initialDataUpdatedAt: 0 });
  const runs = useQuery({
    queryKey: keys.runs(live.id),
    queryFn: () => api.runs(live.id),
    ...begin<api.Run[]>(NONE),
  });
  const records = useQuery({
    queryKey: keys.turns(live.id),
    queryFn: () => api.turns(live.id),
    ...begin<api.TurnRecord[]>(NONE),
  });
  const title = useQuery({
    queryKey: [...keys.threads, "title", live.id],
    queryFn: () => api.title(live.id),
    ...begin<string | null>(null),
  });
  const usage = useQuery({
    queryKey: keys.usage(live.id),
    queryFn: () => usageOf(live.id),
    ...begin<TokenUsage | null>(null),
  });
  const models = useModels();
  useEffect(() => {
    if (exists) void queries.invalidateQueries({ queryKey: keys.thread(live.id) });
  }, [queries, live, exists, thread.endings]);

  const last = answererOf(runs.data[0]);
  const facts = useMemo(() => factsOf(runs.data), [runs.data]); // the cache goes by identity
  const branches = useMemo(() => branchesOf(records.data, thread.messages), [records.data, thread.messages]);
  const waitingCalls = useMemo(() => callsOf(thread.waitingFor), [thread.waitingFor]);
  const [cache] = useState(() => new TurnCache());
  const running = thread.running || pending.length > 0;
  const turns = cache.turns(pending.length ? [...thread.messages, ...pending] : thread.messages, {
    running,
    growing: thread.growing,
    outputs: thread.outputs,
    waiting: thread.waitingFor.length > 0,
    waitingCalls,
    runs: facts,
    branches,
    marks: thread.marks,
  });
  const model =
    models.data?.models.find((one) => one.name === runs.data[0]?.model_name) ??
    models.data?.models.find((one) => one.is_default);

  /** As they are now: those on the page may be from before the answer that has just ended. */
  const newestRecords = () =>
    queries.fetchQuery({ queryKey: keys.turns(live.id), queryFn: () => api.turns(live.id), staleTime: 0 });
  const again = async (turnId: string, text: string | null, settings: RunSettings) => {
    const turn = turns.find((one) => one.id === turnId);
    const checkpointId =
      (await newestRecords()).find((record) => record.message_id === turnId)?.checkpoint_id ?? undefined;
    if (!turn?.question) return;
    if (!checkpointId) throw new ApiError(t("wayGone"), 404, "no_such_checkpoint");
    const message = { text: text ?? turn.question.text, files: turn.question.files };
    await live.send(message, settings, { checkpointId, insteadOf: turnId, last });
    void queries.invalidateQueries({ queryKey: keys.thread(live.id) });
  };

  return {
    threadId: exists ? live.id : null,
    phase,
    loadError,
    running,
    connection,
    turns,
    todos: thread.todos,
    title: title.data ?? thread.title,
    interrupts: pending.length ? NONE : thread.waitingFor.map(interruptOf),
    queued: [
      ...(thread.running
        ? runs.data.filter((run) => isQueued(run, turns.at(-1))).map(queuedOf)
        : []
      ).reverse(),
      ...unsent
        .filter(({ id }) => pending.every((one) => one.id !== id))
        .map((one) => waitingOf(one, "unsent")),
      ...told.map((one) => waitingOf(one, "told")),
    ],
    retrying: thread.retry,
    silence: thread.silence,
    context:
      thread.contextUsed === null
        ? null
        : { used: thread.contextUsed, window: model?.context_window ?? null },
    usage: usage.data,
    agent: last?.agent ?? null,
    childEvents: live.childEvents,
    files: thread.artifacts,
    reload: () => void live.load(),
    async send(message, settings) {
      const isNew = !exists;
      await live.send(message, settings, { last });
      if (isNew && window.location.pathname === threadPath(null)) openThread(live.id, { replace: true });
      else if (isNew) renewDraftThread(); // the person has gone elsewhere meanwhile
      void queries.invalidateQueries({ queryKey: keys.runs(live.id) });
      void queries.invalidateQueries({ queryKey: keys.threads });
    },
    async steer(text) {
      await live.steer(text);
    },
    async stop() {
      if (unsent.some(({ id }) => live.withdraw(id))) return;
      const newest = await queries.fetchQuery({
        queryKey: keys.runs(live.id),
        queryFn: () => api.runs(live.id),
        staleTime: 0,
      });
      const going =
        newest.find((run) => run.status === "running") ?? newest.find((run) => run.status === "pending");
      if (going) await live.stopRun(going.run_id);
      void queries.invalidateQueries({ queryKey: keys.runs(live.id) });
    },
    async cancelQueued(runId) {
      if (live.withdraw(runId)) return;
      const run = runs.data.find(({ run_id: id }) => id === runId);
      if (run) await live.takeBack(run);
      void queries.invalidateQueries({ queryKey: keys.runs(live.id) });
    },
    edit: (turnId, text, settings) => again(turnId, text, settings),
    regenerate: (turnId, settings) => again(turnId, null, settings),
    retryTurn: (turnId, settings) => again(turnId, null, settings),
    async showBranch(turnId, index) {
      const end = waysFrom(await newestRecords(), turnId)[index]?.end_checkpoint_id;
      if (!end) throw new ApiError(t("wayGone"), 404, "no_such_checkpoint");
      await live.goTo(end);
    },
    async respond(interruptId, value, settings) {
      const run = await live.respond(interruptId, value, settings, last ?? undefined);
      // The run may end before the runs are reloaded, and the turn must not keep the state of the interrupt.
      queries.setQueryData<api.Run[]>(
        keys.runs(live.id),
        (runs) => runs && [{ ...run, status: "running" }, ...runs.filter((one) => one.run_id !== run.run_id)],
      );
      void queries.invalidateQueries({ queryKey: keys.runs(live.id) });
    },
  };
}

const NONE: never[] = [];

/** Waits behind the run on its way, and is not what answers the agent's question. */
const isQueued = (run: api.Run, last: Turn | undefined) =>
  run.status === "pending" && run.first_human_message !== null && run.run_id !== last?.runId;

const queuedOf = (run: api.Run): Queued => ({
  runId: run.run_id,
  text: run.first_human_message ?? "",
  files:
    (run.kwargs.input as { messages?: WireMessage[] } | null)?.messages?.flatMap(
      (one) => said(one)?.files ?? [],
    ) ?? [],
  state: "queued",
});

const waitingOf = ({ id, text, files }: Message, state: Queued["state"]): Queued => ({
  runId: id,
  text,
  files,
  state,
});

/** One session for each thread that this page shows; that of a new conversation stays when the thread gets its address. */
function useThreadSession(threadId: string | null): ThreadSession {
  const id = threadId ?? draftThreadId();
  const [session, setSession] = useState(() => new ThreadSession(id, threadId === null));
  if (session.id === id) return session;
  const next = new ThreadSession(id, threadId === null);
  setSession(next);
  return next;
}

async function usageOf(id: string): Promise<TokenUsage> {
  const told = await http.get<
    Record<"total_input_tokens" | "total_output_tokens" | "total_tokens", number> & { cost: number | null }
  >(api.threadApi(id, "/token-usage"));
  return {
    input: told.total_input_tokens,
    output: told.total_output_tokens,
    total: told.total_tokens,
    cost: told.cost,
  };
}
