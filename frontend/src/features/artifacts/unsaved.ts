import type { Text } from "./editing";

export interface Unsaved {
  /** The file at the start of the edit. */
  base: Text;
  draft: string;
}

/** Edits that were left, since another chat or file was opened: there again when the file is. Gone with the page. */
const left = new Map<string, Unsaved>();

const keyOf = (threadId: string, path: string) => `${threadId} ${path}`;

export const unsavedOf = (threadId: string, path: string) => left.get(keyOf(threadId, path));
export const keepUnsaved = (threadId: string, path: string, edit: Unsaved) =>
  void left.set(keyOf(threadId, path), edit);
export const forgetUnsaved = (threadId: string, path: string) => void left.delete(keyOf(threadId, path));
export const hasUnsaved = () => left.size > 0;
