/** Messages that were streamed and are not part of the thread yet. */
import type { Message } from "./message";

interface Streamed {
  messages: readonly Message[];
  growing: ReadonlySet<string>;
  unsaved: ReadonlySet<string>;
  current: unknown;
}

export const minus = (set: ReadonlySet<string>, taken: ReadonlySet<string>) =>
  [...set].some((one) => taken.has(one)) ? new Set([...set].filter((one) => !taken.has(one))) : set;

/** Nothing is left of messages whose step did not end. */
export const withoutUnsaved = <State extends Streamed>(state: State): State => ({
  ...state,
  messages: state.unsaved.size ? state.messages.filter(({ id }) => !state.unsaved.has(id)) : state.messages,
  growing: minus(state.growing, state.unsaved),
  unsaved: state.unsaved.size ? new Set<string>() : state.unsaved,
  current: null,
});

/** The text of an interrupted answer stays in front of the next attempt, as in the thread. */
export function withHalves<State extends Streamed>(state: State): State {
  const isHalf = ({ id, type, text }: Message) =>
    state.unsaved.has(id) && type === "ai" && text.trim() !== "";
  const messages = state.messages.map((one) => (isHalf(one) ? { ...one, calls: [], brokeOff: true } : one));
  const halves = new Set(messages.filter(isHalf).map(({ id }) => id));
  const kept = {
    ...state,
    messages,
    growing: minus(state.growing, halves),
    unsaved: minus(state.unsaved, halves),
  };
  return { ...withoutUnsaved(kept), unsaved: halves };
}
