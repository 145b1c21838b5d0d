/** Events and messages as the gateway sends them, for tests. */
import type { ProtocolEvent } from "./protocol";
import { callsOf } from "./session-views";
import type { ThreadState } from "./thread-state";
import { toTurns, type Surroundings } from "./turns";
import type { WireMessage } from "./wire-message";

let seq = 0;
export const event = (method: string, data: unknown, namespace: string[] = []): ProtocolEvent => ({
  seq: (seq += 1),
  method,
  params: { namespace, timestamp: 0, data },
});
export const begin = event("lifecycle", { event: "running", run_id: "r1" });
export const finish = event("lifecycle", { event: "completed", run_id: "r1" });
export const human = (id: string, run: string, content = "hello"): WireMessage => ({
  id,
  type: "human",
  content,
  additional_kwargs: { run_id: run },
});
export const ai = (id: string, content: string, more: Partial<WireMessage> = {}): WireMessage => ({
  id,
  type: "ai",
  content,
  ...more,
});
export const start = (id: string, role = "ai", more: object = {}) =>
  event("messages", { event: "message-start", id, role, ...more });
export const block = (index: number, content: object) =>
  event("messages", { event: "content-block-start", index, content });
export const delta = (index: number, change: object) =>
  event("messages", { event: "content-block-delta", index, delta: change });
export const end = (usage?: object) => event("messages", { event: "message-finish", usage });
/** Event of a run that starts with messages after `after`. */
export const begun = (after: string | null, messages: WireMessage[]) =>
  event("updates", { node: "__start__", after, values: { messages } });
export const update = (...messages: WireMessage[]) =>
  event("updates", { node: "model", values: { messages } });
export const say = (id: string, text: string) => [
  start(id),
  block(0, { type: "text", text: "" }),
  ...[...text].map((letter) => delta(0, { type: "text-delta", text: letter })),
  end({ input_tokens: 10, output_tokens: 2, total_tokens: 12 }),
];
export const around = (state: ThreadState, more: Partial<Surroundings> = {}): Surroundings => ({
  running: state.running,
  growing: state.growing,
  outputs: state.outputs,
  waiting: state.waitingFor.length > 0,
  waitingCalls: callsOf(state.waitingFor),
  runs: new Map(),
  branches: new Map(),
  marks: state.marks,
  ...more,
});
export const turnsOf = (state: ThreadState, more?: Partial<Surroundings>) =>
  toTurns(state.messages, around(state, more));
