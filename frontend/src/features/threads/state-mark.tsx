"use client";
import { useT } from "@/i18n";
import { useWaiting } from "@/lib/waiting";
import type { ThreadItem } from "./group";
import { useRead } from "./read";

/** That a thread works, waits for its person or has failed. */
export function StateMark({ thread }: { thread: ThreadItem }) {
  const t = useT("threads");
  const isRead = useRead(thread);
  const waiting = useWaiting().data?.some((one) => one.thread_id === thread.id);
  if (thread.status === "busy")
    return (
      <span
        role="img"
        aria-label={t("state.busy")}
        title={t("state.busy")}
        className="flex size-3 items-center justify-center"
      >
        <span className="size-2.5 animate-spin rounded-full border-[1.5px] border-primary border-t-transparent" />
      </span>
    );
  if (waiting) return <Dot label={t("state.waiting")} className="bg-warning" />;
  if (thread.status === "error" && !isRead)
    return <Dot label={t("state.error")} className="bg-destructive" />;
  return null;
}

const Dot = ({ label, className }: { label: string; className: string }) => (
  <span role="img" aria-label={label} title={label} className="flex size-3 items-center justify-center">
    <span className={`size-2 rounded-full ${className}`} />
  </span>
);
