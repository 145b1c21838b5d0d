import { own } from "./storage";
import { uuid } from "./uuid";

/** The id of the conversation that a tab is about to begin: files can be sent to it before the first message. */
const key = () => `deerflow.${own("draftThread")}`;

/** The same in this tab until it is renewed, also after a reload. */
export function draftThreadId(): string {
  return sessionStorage.getItem(key()) ?? renewDraftThread();
}

/** Call it when a conversation has started under the id. Returns the next one. */
export function renewDraftThread(): string {
  const id = uuid();
  sessionStorage.setItem(key(), id);
  return id;
}
