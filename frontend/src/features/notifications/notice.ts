import { openThread, threadPath } from "@/lib/route";
import { readStored } from "@/lib/storage";

/** A notice of the system, if the person wants them on this device; it opens the conversation. */
export function showNotice(title: string, body: string, threadId: string | null) {
  if (!readStored("notifications", false)) return;
  if (!("Notification" in window) || Notification.permission !== "granted") return;
  try {
    const notice = new Notification(title, { body, tag: threadId ?? undefined, icon: "/icon.svg" });
    notice.onclick = () => {
      window.focus();
      if (/^\/chats(\/|$)/.test(window.location.pathname)) openThread(threadId);
      else window.location.assign(threadPath(threadId));
      notice.close();
    };
  } catch {
    // Phones allow notices only from a service worker; the mark in the title remains.
  }
}
