"use client";
import { usePathname, useSearchParams } from "next/navigation";

/** Addresses are `/chats`, `/chats/<thread>` and `?panel=<path of a file, or task:id>`; changing them asks the server for nothing. */
function threadIdOf(pathname: string): string | null {
  const id = /^\/chats\/([^/]+)/.exec(pathname)?.[1] ?? "";
  try {
    return decodeURIComponent(id) || null;
  } catch {
    return id; // no thread has such a name; the server says so
  }
}

export const useThreadId = () => threadIdOf(usePathname());

export const threadPath = (id: string | null) => (id ? `/chats/${encodeURIComponent(id)}` : "/chats");

export function openThread(id: string | null, { replace = false }: { replace?: boolean } = {}) {
  go(threadPath(id), replace);
}

export const settingsPath = (section?: string) => (section ? `/settings/${section}` : "/settings");

const TASK = "task:";
/** Names the transcript of a sub-agent for the panel beside the chat. */
export const taskPanel = (id: string) => TASK + id;

const RUN = "run:";
/** Names the timeline of a run for the panel beside the chat. */
export const runPanel = (runId: string) => RUN + runId;

interface Panel {
  /** "": the list of files, else the path of one; null: no files. */
  open: string | null;
  /** Id of the sub-agent whose transcript it shows. */
  task: string | null;
  /** Id of the run whose timeline it shows. */
  run: string | null;
  /** null closes it. */
  set: (path: string | null) => void;
}

/** Content of the panel beside the chat. */
export function usePanel(): Panel {
  const shown = useSearchParams().get("panel");
  const after = (prefix: string) => (shown?.startsWith(prefix) ? shown.slice(prefix.length) : null);
  const [task, run] = [after(TASK), after(RUN)];
  const set = (path: string | null) => {
    const query = new URLSearchParams(window.location.search);
    if (path === null) query.delete("panel");
    else query.set("panel", path);
    const rest = query.size ? `?${query}` : "";
    go(window.location.pathname + rest, path === null || shown !== null);
  };
  return { open: task === null && run === null ? shown : null, task, run, set };
}

/** Only a page of our own that is worth returning to: `next` comes from outside. */
export function safeNext(next: string | null): string {
  if (!next?.startsWith("/") || next.startsWith("//") || next.includes("\\")) return "/chats";
  try {
    const to = new URL(next, window.location.origin);
    const isOwn = to.origin === window.location.origin && !/^\/(login|setup)(\/|$)/.test(to.pathname);
    return isOwn ? to.pathname + to.search + to.hash : "/chats";
  } catch {
    return "/chats";
  }
}

/** A click that the page handles; others are the browser's own, as for another tab. */
export const isPlainClick = (event: MouseEvent | React.MouseEvent) =>
  !event.metaKey && !event.ctrlKey && !event.shiftKey && !event.altKey && event.button === 0;

function go(address: string, replace: boolean) {
  window.history[replace ? "replaceState" : "pushState"](null, "", address);
}
