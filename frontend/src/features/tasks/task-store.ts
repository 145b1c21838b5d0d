/** Sub-agents of a thread by its events: the activity of each, and its messages. */
import {
  EMPTY_THREAD,
  threadAfter,
  threadLoaded,
  type ChildEvents,
  type Session,
  type ThreadState,
} from "@/features/chat";
import { threadApi, type Task } from "@/lib/api";
import { http } from "@/lib/http";

type Event = Parameters<typeof threadAfter>[1][number];
type Message = NonNullable<Parameters<typeof threadLoaded>[0]["messages"]>[number];
type Call = NonNullable<Message["tool_calls"]>[number];

/** Facts of a sub-agent from events; the list of the thread's tasks has the rest. */
export interface Heard extends Partial<Omit<Task, "task_id" | "status">> {
  status: Task["status"];
  /** Moment of its start or resumption, if that was seen. */
  startedAt?: number;
  /** Of its newest answer. */
  calls: readonly Call[];
}

interface TaskEvent extends Partial<Omit<Task, "namespace">> {
  type: string;
  task_id: string;
  namespace?: string[];
  message?: Message;
  result?: string;
}

type Facts = ReadonlyMap<string, Heard>;

export class TaskStore {
  private facts: Facts = new Map();
  /** By namespace, of those whose beginning was seen or was loaded. */
  private readonly transcripts = new Map<string, ThreadState>();
  private readonly namespaces = new Map<string, string>();
  /** Events that came while transcripts were loaded. */
  private readonly meanwhile = new Set<Event[]>();
  private readonly listeners = new Set<() => void>();

  constructor(childEvents: ChildEvents) {
    childEvents.follow(this.take);
  }

  subscribe = (listener: () => void) => {
    this.listeners.add(listener);
    return () => void this.listeners.delete(listener);
  };

  getFacts = () => this.facts;

  /** null: it has to be loaded. */
  transcript(taskId: string): ThreadState | null {
    return this.transcripts.get(this.namespaces.get(taskId) ?? "") ?? null;
  }

  /** Loads the messages so far; from there on it follows. */
  async load(threadId: string, taskId: string, signal?: AbortSignal) {
    const events: Event[] = [];
    this.meanwhile.add(events);
    try {
      const path = threadApi(threadId, `/tasks/${encodeURIComponent(taskId)}/messages`);
      const messages = await http.get<Message[]>(path, { signal });
      if (this.transcript(taskId)) return;
      const namespace = messages[0]?.id?.replace(/:prompt$/, "") ?? taskId;
      this.namespaces.set(taskId, namespace);
      const own = events.filter(({ params }) => params.namespace[0] === namespace);
      this.transcripts.set(namespace, threadAfter(threadLoaded({ messages }, [], true), own.map(inner)));
      this.notify();
    } finally {
      this.meanwhile.delete(events);
    }
  }

  private take = (events: readonly Event[]) => {
    for (const event of events) {
      const told = taskEvent(event);
      if (told) this.hear(told);
      else this.follow(event);
    }
    this.notify();
  };

  private hear(told: TaskEvent) {
    const { type, task_id: id, message, result, namespace, ...facts } = told;
    const before = this.facts.get(id);
    const place = namespace?.[0];
    if (type === "task_started" && place) {
      this.namespaces.set(id, place);
      this.transcripts.set(place, EMPTY_THREAD); // it goes on with all that it did before
    }
    const now: Heard = {
      ...before,
      ...facts,
      ...(result !== undefined ? { text: result } : {}),
      ...(type === "task_started" ? { startedAt: Date.now() } : {}),
      status: facts.status ?? "running",
      calls: message ? (message.tool_calls ?? []) : (before?.calls ?? []),
    };
    this.facts = new Map(this.facts).set(id, now);
  }

  private follow(event: Event) {
    this.meanwhile.forEach((events) => events.push(event));
    const namespace = event.params.namespace[0] ?? "";
    const state = this.transcripts.get(namespace);
    if (state) this.transcripts.set(namespace, threadAfter(state, [inner(event)]));
  }

  private notify() {
    this.listeners.forEach((listener) => listener());
  }
}

/** As its own graph tells it. */
const inner = (event: Event): Event => ({
  ...event,
  params: { ...event.params, namespace: event.params.namespace.slice(1) },
});

function taskEvent({ method, params }: Event): TaskEvent | null {
  if (method !== "custom") return null;
  const data = params.data as { payload?: TaskEvent };
  const payload = data.payload ?? (data as TaskEvent);
  return typeof payload?.task_id === "string" && payload.type.startsWith("task_") ? payload : null;
}

const stores = new WeakMap<ChildEvents, TaskStore>();

/** One for each thread that the page follows. */
export function storeOf({ childEvents }: Session): TaskStore {
  const store = stores.get(childEvents) ?? new TaskStore(childEvents);
  stores.set(childEvents, store);
  return store;
}
