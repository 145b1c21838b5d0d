"use client";
import { Network } from "lucide-react";
import { useId, useState } from "react";
import { useCost, useNow, type ToolCall } from "@/features/chat";
import { LateTexts, useLocale, useT } from "@/i18n";
import { formatDuration, formatTokens } from "@/lib/format";
import { OpenMark } from "@/ui/open-mark";
import { isAtWork } from "./parts";
import { TaskCard } from "./task-card";
import { TaskRow } from "./task-row";
import { useTasks, type ShownTask, type Status } from "./use-tasks";

/** More than these are a wall of cards. */
const CARDS = 3;

/** Sub-agents that stand together in a turn. */
export function TaskGroup({ calls }: { calls: readonly ToolCall[] }) {
  return (
    <LateTexts of="tasks" fallback={<div style={{ height: 68 * calls.length }} />}>
      <Group calls={calls} />
    </LateTexts>
  );
}

function Group({ calls }: { calls: readonly ToolCall[] }) {
  const t = useT("tasks");
  const tasks = useTasks(calls);
  const deferred = tasks.filter(({ status }) => status === "deferred").length;
  if (tasks.length > CARDS && tasks.length - deferred > 0) return <Tree tasks={tasks} />;
  return (
    <ul aria-label={t("group")} className="my-2 flex flex-col gap-2">
      {tasks.map((task) => (
        <TaskCard key={task.id} task={task} />
      ))}
    </ul>
  );
}

/** Many of them: totals, and a line for each. Open while they work. */
function Tree({ tasks }: { tasks: readonly ShownTask[] }) {
  const t = useT("tasks");
  const shown = tasks.filter(({ status }) => status !== "deferred");
  const [chosen, setChosen] = useState<boolean | null>(null);
  const open = chosen ?? tasks.some((task) => isAtWork(task) || task.status === "preparing");
  const id = useId();
  return (
    <section aria-label={t("group")} className="@container my-2 rounded-xl border bg-card">
      <button
        type="button"
        aria-expanded={open}
        aria-controls={open ? id : undefined}
        className="flex min-h-11 w-full items-center gap-2.5 rounded-xl px-3 py-2 text-left transition-colors hover:bg-accent/60"
        onClick={() => setChosen(!open)}
      >
        <Network aria-hidden className="size-4 shrink-0 text-muted-foreground" />
        <span className="flex min-w-0 flex-1 flex-wrap items-baseline gap-x-2">
          <span className="text-sm leading-5 font-medium">{t("count", { n: shown.length })}</span>
          <span className="text-xs text-muted-foreground">{useCounts(tasks)}</span>
        </span>
        <Totals tasks={shown} />
        <OpenMark open={open} />
      </button>
      {open && (
        <ul id={id} className="mr-2 mb-2 ml-5 flex flex-col border-l pl-2">
          {shown.map((task) => (
            <TaskRow key={task.id} task={task} />
          ))}
        </ul>
      )}
    </section>
  );
}

const ORDER: Status[] = [
  "waiting",
  "running",
  "preparing",
  "completed",
  "turn_limit",
  "failed",
  "timed_out",
  "cancelled",
  "deferred",
];

function useCounts(tasks: readonly ShownTask[]): string {
  const t = useT("tasks.some");
  const counts = ORDER.map(
    (status) => [status, tasks.filter((task) => task.status === status).length] as const,
  );
  return counts.flatMap(([status, n]) => (n ? [t(status, { n })] : [])).join(" · ");
}

/** Of all together: what they used, and how long it took if that was seen. */
function Totals({ tasks }: { tasks: readonly ShownTask[] }) {
  const common = useT("common");
  const [locale] = useLocale();
  const cost = useCost();
  const began = tasks.flatMap(({ startedAt }) => startedAt ?? []);
  const now = useNow(began.length > 0);
  const tokens = tasks.reduce((sum, task) => sum + task.tokens, 0);
  const money = tasks.reduce((sum, task) => sum + (task.cost ?? 0), 0);
  const time = began.length ? Math.floor((now - Math.min(...began)) / 1000) * 1000 : 0;
  const parts = [
    tokens > 0 && common("tokens", { count: formatTokens(tokens) }),
    money > 0 && cost(money),
    time >= 1000 && formatDuration(time, locale),
  ].filter(Boolean);
  return (
    <span className="text-xs whitespace-nowrap text-muted-foreground tabular-nums">{parts.join(" · ")}</span>
  );
}
