/** What was streamed and is not part of the thread yet. */
import type { ThreadState } from "./thread-state";
import type { Said } from "./turns";

export const minus = (set: ReadonlySet<string>, taken: ReadonlySet<string>) =>
  [...set].some((one) => taken.has(one)) ? new Set([...set].filter((one) => !taken.has(one))) : set;

/** Nothing is left of messages whose step did not end. */
export const withoutUnsaved = (state: ThreadState): ThreadState => ({
  ...state,
  messages: state.unsaved.size ? state.messages.filter(({ id }) => !state.unsaved.has(id)) : state.messages,
  growing: minus(state.growing, state.unsaved),
  unsaved: state.unsaved.size ? new Set<string>() : state.unsaved,
  current: null,
});

/** What an answer said until it broke off stays, in front of what the next attempt says: the thread keeps it, too. */
export function withHalves(state: ThreadState): ThreadState {
  const isHalf = ({ id, type, text }: Said) => state.unsaved.has(id) && type === "ai" && text.trim() !== "";
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
