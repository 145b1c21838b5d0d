import { own, readStored, writeStored } from "./storage";

/** A file that lies on the server, as a message names it. */
export interface UploadedRef {
  filename: string;
  size: number;
  path: string;
}

/** A message that is written, with its attachments, and not sent; kept on this device. */
export interface Draft {
  text: string;
  files: UploadedRef[];
}
interface Stored extends Draft {
  /** Conversation that holds the files. */
  conversation: string;
}

const EMPTY: Draft = { text: "", files: [] };
const RESTORED = "deerflow:draft";

const keyOf = (conversation: string) => own(`draft.${conversation}`);
/** A new conversation has one draft for all tabs: its id is forgotten with the tab. */
const keyOfNew = () => keyOf("new");

export function readDraft(conversation: string, isNew: boolean): Draft {
  const given = readStored<Partial<Stored> | null>(keyOf(conversation), null);
  const found = given ?? (isNew ? readStored<Partial<Stored> | null>(keyOfNew(), null) : null);
  if (!found) return EMPTY;
  const files = found.conversation === conversation && Array.isArray(found.files) ? found.files : [];
  return { text: typeof found.text === "string" ? found.text : "", files };
}

export function writeDraft(conversation: string, isNew: boolean, draft: Draft) {
  const empty = draft.text.trim() === "" && draft.files.length === 0;
  if (isNew) writeStored(keyOf(conversation), undefined); // what came back to it lives on in the draft
  writeStored(isNew ? keyOfNew() : keyOf(conversation), empty ? undefined : { ...draft, conversation });
}

export function forgetDraft(conversation: string, wasNew = false) {
  writeStored(keyOf(conversation), undefined);
  if (wasNew) writeStored(keyOfNew(), undefined);
}

/** Return a message that could not be sent to the conversation's field, even if that was remounted meanwhile. */
export function restoreDraft(conversation: string, draft: Draft) {
  writeStored(keyOf(conversation), { ...draft, conversation });
  window.dispatchEvent(new CustomEvent(RESTORED, { detail: conversation }));
}

/** Tells of drafts that came back; returns how to stop. */
export function onRestored(handler: (conversation: string) => void): () => void {
  const listen = (event: Event) => handler((event as CustomEvent<string>).detail);
  window.addEventListener(RESTORED, listen);
  return () => window.removeEventListener(RESTORED, listen);
}
