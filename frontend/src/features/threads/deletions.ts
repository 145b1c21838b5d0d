import { useSyncExternalStore } from "react";
import { http } from "@/lib/http";

type Ids = ReadonlySet<string>;
let hidden: Ids = new Set();
/** Deleted when their notice goes, or the page is left: each group in one request, so that nothing is done by halves. */
const waiting = new Set<readonly string[]>();
const listeners = new Set<() => void>();

function setHidden(next: Ids) {
  hidden = next;
  listeners.forEach((listener) => listener());
}

/** Takes chats out of sight. They are deleted by {@link deleteHidden}, not before. */
export function hide(ids: readonly string[]) {
  waiting.add(ids);
  setHidden(new Set([...hidden, ...ids]));
}

export function unhide(ids: readonly string[]) {
  waiting.delete(ids);
  setHidden(new Set([...hidden].filter((id) => !ids.includes(id))));
}

export async function deleteHidden(ids: readonly string[]) {
  if (!waiting.delete(ids)) return;
  // The browser sends it even when the page goes.
  await http.post("/api/threads/prune", { thread_ids: ids }, { keepalive: true });
}

if (typeof window !== "undefined")
  window.addEventListener("pagehide", () => waiting.forEach((ids) => void deleteHidden(ids).catch(() => {})));

const subscribe = (listener: () => void) => {
  listeners.add(listener);
  return () => void listeners.delete(listener);
};

/** Ids of chats that are on their way out. */
export const useHidden = () =>
  useSyncExternalStore(
    subscribe,
    () => hidden,
    () => hidden,
  );
