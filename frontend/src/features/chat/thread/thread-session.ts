/**
 * One thread as this browser knows it: loaded once, followed from there on, with messages that are sent and not
 * confirmed yet.
 */
import { noteThread, runs, thread, threadApi, type Run } from "@/lib/api";
import { ApiError, http, isUnreachable } from "@/lib/http";
import { notesOf, type AgentChoice, type RunSettings } from "@/lib/run-settings";
import { uuid } from "@/lib/uuid";
import { ChildEvents } from "./child-events";
import { follow, pause, WAITS } from "./protocol";
import {
  cutBefore,
  EMPTY,
  loaded,
  reduce,
  type ThreadState,
  type Values,
  type WaitingFor,
} from "./thread-state";
import type { FileRef, Message, Sending } from "./message";

export interface Outgoing {
  text: string;
  files?: FileRef[];
}

/** Assistant that answered last; `agent`: the custom agent that it runs, or that is being set up. */
export interface Answerer {
  assistantId: string;
  agent: AgentChoice | null;
}
const LEAD_AGENT = "lead_agent";

export type Phase = "loading" | "missing" | "failed" | "ready";

export interface Snapshot {
  phase: Phase;
  loadError: ApiError | null;
  connection: "live" | "retrying";
  thread: ThreadState;
  /** Sent, and not yet in the thread. */
  pending: readonly Message[];
  /** Of these, and of what is to follow the run on its way: what waits for the server to be reached again. */
  unsent: readonly Message[];
  /** Message to the run on its way, which has not read them yet. */
  told: readonly Message[];
  /** The thread has been there before this browser spoke to it, or does now. */
  exists: boolean;
}

const NEW: Snapshot = {
  phase: "ready",
  loadError: null,
  connection: "live",
  thread: EMPTY,
  pending: [],
  unsent: [],
  told: [],
  exists: false,
};

export class ThreadSession {
  readonly childEvents = new ChildEvents();
  private snapshot: Snapshot;
  private readonly listeners = new Set<() => void>();
  private stopFollowing: (() => void) | null = null;
  private loading: AbortController | null = null;
  private users = 0;
  /** Assistant that the thread was created with, until its runs are known. */
  private answerer: Answerer | null = null;
  private readonly withdrawals = new Map<string, AbortController>();
  /** Messages are sent in the order in which they were written. */
  private line: Promise<unknown> = Promise.resolve();

  /** `fresh`: the thread is not there yet; it begins with the first message. */
  constructor(
    readonly id: string,
    fresh: boolean,
  ) {
    this.snapshot = fresh ? NEW : { ...NEW, phase: "loading", exists: true };
  }

  getSnapshot = () => this.snapshot;

  /** Loads and follows while anybody listens. */
  subscribe = (listener: () => void) => {
    this.listeners.add(listener);
    this.users += 1;
    if (this.users === 1 && this.snapshot.exists) void this.load();
    return () => {
      this.listeners.delete(listener);
      this.users -= 1;
      if (this.users === 0) this.stop();
    };
  };

  /** Reload the thread, and follow it from there. */
  load = async (): Promise<void> => {
    this.stop();
    const loading = (this.loading = new AbortController());
    try {
      const found = await thread(this.id, loading.signal);
      const waitingFor = Object.values(found.interrupts).flat() as unknown as WaitingFor[];
      const running = found.status === "busy";
      const begunWith = found.metadata.assistant_id;
      if (typeof begunWith === "string") this.answerer = { assistantId: begunWith, agent: null };
      this.set({
        phase: "ready",
        loadError: null,
        exists: true,
        thread: {
          ...loaded(found.values as Values, waitingFor, running),
          endings: this.snapshot.thread.endings + 1,
        },
        pending: this.snapshot.pending.filter(({ sending }) => sending === "offline"),
      });
      if (!loading.signal.aborted) this.follow(found.stream_position);
    } catch (error) {
      if (loading.signal.aborted) return;
      const told = error instanceof ApiError ? error : new ApiError(String(error), 0, "error");
      this.set({ phase: told.status === 404 ? "missing" : "failed", loadError: told });
    }
  };

  /**
   * Starts a run with the message; it waits for its turn while another one is on its way. While the server cannot be reached
   * the message waits for that, if it says something new. Throws ApiError; its code is `withdrawn` after {@link withdraw}.
   */
  async send(
    message: Outgoing,
    settings: RunSettings,
    place: { checkpointId?: string; insteadOf?: string; last?: Answerer | null } = {},
  ) {
    const id = uuid();
    const before = this.snapshot;
    const waits = before.thread.running && !place.checkpointId;
    if (!waits) {
      const cut = place.insteadOf ? cutBefore(before.thread, place.insteadOf) : before.thread;
      this.set({ thread: { ...cut, waitingFor: [] }, pending: [...before.pending, sending(id, message)] });
    }
    const body = {
      if_not_exists: "create",
      input: { messages: [wire(id, message)] },
      ...asked(settings, place.last ?? this.answerer),
      multitask_strategy: place.checkpointId ? "interrupt" : "enqueue",
      ...(place.checkpointId ? { checkpoint_id: place.checkpointId } : {}),
    };
    const notes = before.exists ? null : notesOf(settings);
    try {
      if (place.checkpointId) await http.post(threadApi(this.id, "/runs"), body);
      else await (this.line = this.line.catch(() => {}).then(() => this.deliver(id, message, body, notes)));
      this.mark(id, "accepted");
    } catch (error) {
      const { waitingFor } = before.thread;
      this.set({
        thread: place.insteadOf ? before.thread : { ...this.snapshot.thread, waitingFor },
        pending: without(this.snapshot.pending, id),
      });
      throw error;
    }
    if (!this.snapshot.exists) {
      this.set({ exists: true });
      this.follow(0);
    }
  }

  private async deliver(id: string, message: Outgoing, body: object, metadata: object | null) {
    const withdrawal = new AbortController();
    this.withdrawals.set(id, withdrawal);
    try {
      for (let failures = 0; ; failures += 1) {
        try {
          // The answer may have been lost, not the message: what has arrived is not sent twice.
          if (failures === 0 || !(await this.hasArrived(id))) {
            if (metadata) await noteThread(this.id, metadata);
            await http.post(threadApi(this.id, "/runs"), body);
          }
          return;
        } catch (error) {
          if (!isUnreachable(error)) throw error;
        }
        this.mark(id, "offline");
        const others = this.snapshot.unsent.filter((one) => one.id !== id);
        this.set({ unsent: [...others, sending(id, message)] });
        await pause(WAITS[Math.min(failures, WAITS.length - 1)]!, withdrawal.signal);
        if (withdrawal.signal.aborted) throw new ApiError("", 0, "withdrawn");
      }
    } finally {
      this.withdrawals.delete(id);
      this.set({ unsent: without(this.snapshot.unsent, id) });
    }
  }

  private async hasArrived(id: string): Promise<boolean> {
    try {
      const [known, here] = await Promise.all([runs(this.id), thread(this.id)]);
      const begun = known.flatMap(({ kwargs }) => messagesOf(kwargs.input));
      return [...begun, ...messagesOf(here.values)].some((message) => message.id === id);
    } catch (error) {
      if (error instanceof ApiError && error.status === 404) return false;
      throw error;
    }
  }

  /** Takes a message back that waits for the server; false if it does not, or not any more. */
  withdraw(id: string): boolean {
    if (!this.snapshot.unsent.some((one) => one.id === id)) return false;
    this.withdrawals.get(id)?.abort();
    return true;
  }

  private mark(id: string, sending: Sending) {
    this.set({ pending: this.snapshot.pending.map((one) => (one.id === id ? { ...one, sending } : one)) });
  }

  /** Hands a message to the run on its way. ApiError 409 `not_running`: there is none. */
  async steer(text: string) {
    const id = uuid();
    this.set({ told: [...this.snapshot.told, sending(id, { text })] });
    try {
      await http.post(threadApi(this.id, "/steer"), { message: wire(id, { text }) });
    } catch (error) {
      this.set({ told: without(this.snapshot.told, id) });
      throw error;
    }
  }

  /** Answers what the thread waits for; gives the run that goes on with it. */
  async respond(
    interruptId: string,
    value: unknown,
    settings: RunSettings,
    last: Answerer | null = this.answerer,
  ) {
    const { waitingFor, answering, running } = this.snapshot.thread;
    this.set({
      thread: {
        ...this.snapshot.thread,
        waitingFor: waitingFor.filter(({ id }) => id !== interruptId),
        answering: new Set([...answering, interruptId]),
        running: true, // before it can have ended
      },
    });
    try {
      return await http.post<Run>(threadApi(this.id, "/runs"), {
        command: { resume: { [interruptId]: value } },
        multitask_strategy: "enqueue", // another answer may be on its way
        ...asked({ ...settings, agent: undefined }, last), // the caller continues
      });
    } catch (error) {
      this.set({ thread: { ...this.snapshot.thread, waitingFor, answering, running } });
      throw error;
    }
  }

  stopRun = (runId: string, action: "interrupt" | "rollback" = "interrupt") =>
    http.post(threadApi(this.id, `/runs/${runId}/cancel`), undefined, { query: { action } });

  /** As if it had never been asked for. Its message may have been sent before one could see that it has to wait. */
  async takeBack(run: Run) {
    await this.stopRun(run.run_id, "rollback");
    const taken = messagesOf(run.kwargs.input).map(({ id }) => id);
    this.set({ pending: this.snapshot.pending.filter(({ id }) => !taken.includes(id)) });
  }

  /** Goes back to another way on from a message of the person. */
  async goTo(checkpointId: string) {
    await http.post(threadApi(this.id, "/state"), {
      values: null,
      checkpoint: { checkpoint_id: checkpointId },
    });
    await this.load();
  }

  private follow(since: number) {
    this.stopFollowing?.();
    if (this.users === 0) return;
    this.stopFollowing = follow(this.id, since, {
      onEvents: (events) => {
        this.childEvents.add(events);
        const state = reduce(this.snapshot.thread, events);
        const heard = new Set(state.messages.map(({ id }) => id));
        const pending = this.snapshot.pending.filter(({ id }) => !heard.has(id));
        const told = state.running ? this.snapshot.told.filter(({ id }) => !heard.has(id)) : [];
        this.set({
          thread: state,
          pending: pending.length === this.snapshot.pending.length ? this.snapshot.pending : pending,
          told: told.length === this.snapshot.told.length ? this.snapshot.told : told,
        });
      },
      onConnection: (connection) => this.set({ connection }),
      onGone: (error) => this.set({ phase: "missing", loadError: error }),
    });
  }

  private stop() {
    this.loading?.abort();
    this.stopFollowing?.();
    this.stopFollowing = null;
  }

  private set(change: Partial<Snapshot>) {
    const changed = Object.entries(change).some(
      ([key, value]) => this.snapshot[key as keyof Snapshot] !== value,
    );
    if (!changed) return;
    this.snapshot = { ...this.snapshot, ...change };
    this.listeners.forEach((listener) => listener());
  }
}

/** Assistant and settings in the gateway's terms. */
function asked({ modelName, mode, effort, agent }: RunSettings, last: Answerer | null) {
  const setUp = agent === undefined ? last?.agent?.setUp && last.agent : agent?.setUp && agent;
  const goesOn = last?.assistantId ?? LEAD_AGENT;
  return {
    assistant_id: setUp ? LEAD_AGENT : agent === undefined ? goesOn : (agent?.name ?? LEAD_AGENT),
    context: {
      mode,
      ...(modelName ? { model_name: modelName } : {}),
      time_zone: Intl.DateTimeFormat().resolvedOptions().timeZone,
      ...(effort ? { reasoning_effort: effort } : {}),
      ...(setUp ? { is_bootstrap: true, agent_name: setUp.name } : {}),
    },
  };
}

const wire = (id: string, { text, files }: Outgoing) => ({
  type: "human",
  id,
  content: text,
  ...(files?.length ? { additional_kwargs: { files } } : {}),
});

const sending = (id: string, { text, files }: Outgoing): Message => ({
  id,
  type: "human",
  text,
  thinking: "",
  calls: [],
  callId: null,
  failed: false,
  images: [],
  files: files ?? [],
  usage: null,
  runId: null,
  recalled: null,
  sending: "now",
});

const messagesOf = (values: unknown) => (values as { messages?: { id?: string }[] } | null)?.messages ?? [];

const without = (pending: readonly Message[], id: string) => pending.filter((message) => message.id !== id);
