/**
 * State of a thread in the browser: its values, and the changes by events since. Pure; unchanged parts keep
 * their identity.
 */
import type { ProtocolEvent } from "./protocol";
import { contextOf, without, withSummaries, type SummaryMark, type WireSummary } from "./summaries";
import type { Message } from "./message";
import type { Todo } from "./turns";
import { minus, withHalves, withoutUnsaved } from "./unsaved";
import { said, type WireMessage } from "./wire-message";

export interface Values {
  title?: string | null;
  messages?: WireMessage[];
  todos?: Todo[] | null;
  artifacts?: string[];
  summaries?: WireSummary[];
}

interface Update {
  values: Values | null | (Values | null)[];
  after?: string | null;
}

export interface WaitingFor {
  id: string;
  value: unknown;
}

export interface ThreadState {
  messages: readonly Message[];
  title: string | null;
  todos: readonly Todo[];
  artifacts: readonly string[];
  /** Of the branch that is shown, the newest last. */
  marks: readonly SummaryMark[];
  running: boolean;
  waitingFor: readonly WaitingFor[];
  /** Open interrupts at the start of the run, until it is known which of them the run answers. */
  before: readonly WaitingFor[];
  /** Ids of interrupts that were answered here, until the run that continues has started. */
  answering: ReadonlySet<string>;
  growing: ReadonlySet<string>;
  /** By call: what it has written so far. */
  outputs: Readonly<Record<string, string>>;
  retry: Retry | null;
  /** Seconds for which the model has sent nothing; any other event ends that. */
  silence: number | null;
  /** Input tokens of the newest call of the model. */
  contextUsed: number | null;
  /** Grows with each run that has ended. */
  endings: number;
  /** Ids of messages in the loaded state: the replay of a run does not write them again. */
  sealed: ReadonlySet<string>;
  /** Ids of messages that were streamed and are not part of the thread yet: they go if their step does not end. */
  unsaved: ReadonlySet<string>;
  /** The message that is being streamed. */
  current: { id: string; blocks: Block[] } | null;
}

/** The model did not answer: why, and which is asked now; empty: the same one again. */
export interface Retry {
  reason: string;
  fallback: string;
}

interface Block {
  type: "text" | "reasoning" | "tool_call" | "other";
  text: string;
  id?: string;
  name?: string;
  args?: Record<string, unknown>;
}

export const EMPTY: ThreadState = {
  messages: [],
  title: null,
  todos: [],
  artifacts: [],
  marks: [],
  running: false,
  waitingFor: [],
  before: [],
  answering: new Set(),
  growing: new Set(),
  outputs: {},
  retry: null,
  silence: null,
  contextUsed: null,
  endings: 0,
  sealed: new Set(),
  unsaved: new Set(),
  current: null,
};
/** Characters of a command's live output that are kept; the result holds the rest. */
const OUTPUT = 100_000;

/** The state as loaded. */
export function loaded(values: Values, waitingFor: readonly WaitingFor[], running: boolean): ThreadState {
  const state = withValues({ ...EMPTY, waitingFor, running }, values);
  const contextUsed = contextOf(state.messages, state.marks);
  return { ...state, sealed: new Set(state.messages.map(({ id }) => id)), contextUsed };
}

/** A message and all after it taken away: the person says it in other words. */
export function cutBefore(state: ThreadState, messageId: string): ThreadState {
  const at = state.messages.findIndex(({ id }) => id === messageId);
  return at < 0 ? state : { ...upTo(state, at), waitingFor: [], todos: [] };
}

/** The first `count` messages, and the summaries that were made in their runs. */
function upTo(state: ThreadState, count: number): ThreadState {
  const { messages, marks } = state;
  return { ...state, messages: messages.slice(0, count), marks: without(marks, messages.slice(count)) };
}

export function reduce(state: ThreadState, events: readonly ProtocolEvent[]): ThreadState {
  return events.reduce(
    (before, event) => afterEvent(before.silence === null ? before : { ...before, silence: null }, event),
    state,
  );
}

function afterEvent(state: ThreadState, { method, params }: ProtocolEvent): ThreadState {
  const data = params.data as Record<string, unknown>;
  if (params.namespace.length > 0 && method !== "input.requested") return state; // what sub-agents say stands in their own cards
  switch (method) {
    case "custom":
      return afterCustom(state, (data.payload ?? data) as Record<string, unknown>);
    case "lifecycle":
      return afterLifecycle(state, data);
    case "updates":
      return afterUpdate(state, data as unknown as Update);
    case "messages":
      return afterMessageEvent(state, data);
    case "input.requested": {
      const waiting = { id: String(data.interrupt_id), value: data.payload ?? data.value };
      if (state.answering.has(waiting.id)) return state; // its answer waits for the run before it
      return { ...state, waitingFor: [...state.waitingFor.filter(({ id }) => id !== waiting.id), waiting] };
    }
    case "input.answered": {
      const answered = new Set(data.interrupt_ids as string[]);
      const waitingFor = state.before.filter(({ id }) => !answered.has(id));
      return { ...state, waitingFor, answering: minus(state.answering, answered) };
    }
    default:
      return state;
  }
}

function afterLifecycle(state: ThreadState, data: Record<string, unknown>): ThreadState {
  if (data.event === "running")
    return { ...state, running: true, before: state.waitingFor, waitingFor: [], retry: null };
  if (!["completed", "failed", "interrupted"].includes(String(data.event))) return state;
  const none = { growing: EMPTY.growing, outputs: {}, retry: null };
  return { ...withoutUnsaved(state), ...none, running: false, endings: state.endings + 1 };
}

/** A step has ended, or a run has started after the message `after` (null: with the first one). */
function afterUpdate(state: ThreadState, { values, after }: Update): ThreadState {
  const writes = (Array.isArray(values) ? values : [values]).filter((write) => write !== null);
  const begins = after !== undefined && !isReplayed(state, writes);
  const before = begins ? { ...cutAfter(state, after), todos: EMPTY.todos } : state;
  return writes.reduce(withValues, before);
}

/** The loaded state holds what the run began with: the replay of the run takes nothing away. */
const isReplayed = (state: ThreadState, writes: readonly Values[]) =>
  writes.some((write) =>
    listOf(write.messages).some(({ id }) => state.messages.some((one) => one.id === id)),
  );

function cutAfter(state: ThreadState, messageId: string | null): ThreadState {
  const at = state.messages.findIndex(({ id }) => id === messageId);
  if (messageId !== null && at < 0) return state; // it is none that people see
  return at === state.messages.length - 1 ? state : upTo(state, at + 1);
}

function withValues(state: ThreadState, values: Values): ThreadState {
  const messages = [...state.messages];
  const saved = new Set<string>();
  let place = messages.length;
  // Backwards: what was streamed has its place, and a message that came in before it goes there.
  for (const message of listOf(values.messages).toReversed()) {
    const now = said(message);
    if (!now) continue;
    saved.add(now.id);
    const at = messages.findLastIndex(({ id }) => id === now.id);
    if (at < 0) messages.splice(place, 0, now);
    else if (at > place) {
      // It came in by itself, behind the answer to it.
      messages.splice(at, 1);
      messages.splice(place, 0, now);
    } else {
      place = at;
      if (JSON.stringify(messages[at]) !== JSON.stringify(now)) messages[at] = now;
    }
  }
  const marks = withSummaries(state.marks, values.summaries);
  return {
    ...state,
    messages: saved.size ? messages : state.messages,
    growing: minus(state.growing, saved),
    unsaved: minus(state.unsaved, saved),
    title: values.title ?? state.title,
    todos: values.todos ?? state.todos,
    marks,
    contextUsed: marks === state.marks ? state.contextUsed : marks.at(-1)!.after,
    artifacts: values.artifacts ? [...new Set([...state.artifacts, ...values.artifacts])] : state.artifacts,
  };
}

const listOf = (messages: Values["messages"] | WireMessage) =>
  messages === undefined ? [] : Array.isArray(messages) ? messages : [messages];

function afterCustom(state: ThreadState, data: Record<string, unknown>): ThreadState {
  if (data.type === "tool_output" && typeof data.tool_call_id === "string") {
    const before = state.outputs[data.tool_call_id] ?? "";
    const output = (before + String(data.text ?? "")).slice(-OUTPUT);
    return { ...state, outputs: { ...state.outputs, [data.tool_call_id]: output } };
  }
  if (data.type === "llm_retry") {
    const retry = { reason: String(data.reason ?? ""), fallback: String(data.fallback ?? "") };
    return { ...state, current: null, retry };
  }
  if (data.type === "llm_waiting") return { ...state, silence: Number(data.seconds) };
  if (data.type === "token_usage") {
    const usage = data.usage as { input_tokens?: number } | undefined;
    return { ...state, contextUsed: usage?.input_tokens ?? state.contextUsed };
  }
  return state;
}

function afterMessageEvent(state: ThreadState, data: Record<string, unknown>): ThreadState {
  switch (data.event) {
    case "message-start":
      return afterStart(state.retry === null ? state : withHalves(state), data);
    case "content-block-start":
    case "content-block-finish":
      return withBlock(state, Number(data.index), () => blockOf(data.content as Record<string, unknown>));
    case "content-block-delta":
      return withBlock(state, Number(data.index), (block) =>
        grown(block, data.delta as Record<string, unknown>),
      );
    case "message-finish":
      return afterFinish(state, data);
    case "error": // the run was resumed, and streams the step again
      return withoutUnsaved(state);
    default:
      return state;
  }
}

function afterStart(state: ThreadState, data: Record<string, unknown>): ThreadState {
  const id = String(data.id);
  if (state.sealed.has(id)) return { ...state, current: null };
  const message = said({
    id,
    type: data.role === "tool" || data.role === "human" ? data.role : "ai",
    content: "",
    name: data.name as string | undefined,
    tool_call_id: data.tool_call_id as string | undefined,
    additional_kwargs: { hide_from_ui: (data.metadata as Record<string, unknown> | undefined)?.hide_from_ui },
  });
  if (!message) return { ...state, current: null };
  const at = state.messages.findIndex((one) => one.id === id);
  const messages = at < 0 ? [...state.messages, message] : state.messages.with(at, message);
  return {
    ...state,
    messages,
    retry: null,
    current: { id, blocks: [] },
    growing: new Set([...state.growing, id]),
    unsaved: new Set([...state.unsaved, id]),
  };
}

function withBlock(
  state: ThreadState,
  index: number,
  change: (block: Block | undefined) => Block,
): ThreadState {
  if (!state.current) return state;
  const blocks = [...state.current.blocks];
  blocks[index] = change(blocks[index]);
  const of = (type: Block["type"]) => blocks.filter((block) => block?.type === type);
  return {
    ...state,
    current: { ...state.current, blocks },
    messages: withMessage(state, state.current.id, {
      text: of("text")
        .map(({ text }) => text)
        .join(""),
      thinking: of("reasoning")
        .map(({ text }) => text)
        .join(""),
      calls: of("tool_call").map(({ id, name, args }) => ({
        id: id ?? "",
        name: name ?? "",
        args: args ?? {},
      })),
    }),
  };
}

function afterFinish(state: ThreadState, data: Record<string, unknown>): ThreadState {
  if (!state.current) return state;
  const told = data.usage as
    { input_tokens: number; output_tokens: number; total_tokens: number } | undefined;
  const usage = told && { input: told.input_tokens, output: told.output_tokens, total: told.total_tokens };
  const growing = new Set(state.growing);
  growing.delete(state.current.id);
  return {
    ...state,
    growing,
    current: null,
    messages: usage ? withMessage(state, state.current.id, { usage }) : state.messages,
    contextUsed: usage?.input ?? state.contextUsed,
  };
}

function withMessage(state: ThreadState, id: string, change: Partial<Message>): readonly Message[] {
  const at = state.messages.findLastIndex((message) => message.id === id);
  const message = state.messages[at];
  return message ? state.messages.with(at, { ...message, ...change }) : state.messages;
}

function blockOf(content: Record<string, unknown>): Block {
  const { type } = content;
  if (type === "text") return { type, text: String(content.text ?? "") };
  if (type === "reasoning") return { type, text: String(content.reasoning ?? content.text ?? "") };
  if (typeof type === "string" && type.includes("tool_call")) {
    const { id, name, args } = content;
    const whole = typeof args === "object" && args ? (args as Record<string, unknown>) : undefined;
    const text = typeof args === "string" ? args : "";
    return { type: "tool_call", text, id: String(id ?? ""), name: String(name ?? ""), args: whole ?? {} };
  }
  return { type: "other", text: "" };
}

function grown(block: Block | undefined, delta: Record<string, unknown>): Block {
  if (delta.type === "tool-call-delta") {
    const before = block ?? { type: "tool_call", text: "" };
    return { ...before, text: before.text + String(delta.args ?? ""), args: before.args };
  }
  const type = delta.type === "reasoning-delta" ? "reasoning" : "text";
  const before = block ?? { type, text: "" };
  return { ...before, text: before.text + String(delta.text ?? delta.reasoning ?? "") };
}
