import type { FoundThread } from "@/lib/api";

export type Period = "today" | "yesterday" | "week" | "older";

/** As the sidebar shows it. */
export interface ThreadItem {
  id: string;
  title: string | null;
  status: "idle" | "busy" | "interrupted" | "error";
  pinned: boolean;
  archived: boolean;
  updatedAt: string;
}

export function toItem(thread: FoundThread): ThreadItem {
  const title = thread.values?.title;
  return {
    id: thread.thread_id ?? "",
    title: typeof title === "string" && title.trim() ? title : null,
    status: thread.status ?? "idle",
    pinned: thread.metadata?.pinned === true,
    archived: isArchived(thread),
    updatedAt: thread.updated_at ?? "",
  };
}

export const isArchived = (thread: FoundThread) => thread.metadata?.archived === true;

/** It has files and no message: it is a draft, and listed nowhere. */
export function isDraft(thread: FoundThread): boolean {
  return thread.status === "idle" && !thread.values?.title && thread.updated_at === thread.created_at;
}

/** The periods that have threads, newest first; days are those of this device's time zone. */
export function byPeriod(threads: readonly ThreadItem[], now = new Date()): [Period, ThreadItem[]][] {
  const groups = new Map<Period, ThreadItem[]>();
  for (const thread of threads) {
    const period = periodOf(new Date(thread.updatedAt), now);
    groups.set(period, [...(groups.get(period) ?? []), thread]);
  }
  const order: Period[] = ["today", "yesterday", "week", "older"];
  return order.flatMap((period) => {
    const found = groups.get(period);
    return found ? [[period, found] as [Period, ThreadItem[]]] : [];
  });
}

function periodOf(date: Date, now: Date): Period {
  if (date >= startOfDay(now, 0)) return "today";
  if (date >= startOfDay(now, 1)) return "yesterday";
  return date >= startOfDay(now, 7) ? "week" : "older";
}

/** By the calendar, since days have 23 or 25 hours where clocks are changed. */
const startOfDay = (now: Date, daysBefore: number) =>
  new Date(now.getFullYear(), now.getMonth(), now.getDate() - daysBefore);
