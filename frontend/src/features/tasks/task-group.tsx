"use client";
import { Network } from "lucide-react";
import { useId, useState } from "react";
import { useOpenFor, useSession, type ToolCall } from "@/features/chat";
import { LateTexts, useT } from "@/i18n";
import { OpenMark } from "@/ui/open-mark";
import { Small, useSpent } from "./parts";
import { TaskCard } from "./task-card";
import { TaskRow } from "./task-row";
import { taskCalls, useTasks, type ShownTask, type Status } from "./use-tasks";
import { texts } from "./texts";

/** More than these are a wall of cards. */
const CARDS = 3;

/** Sub-agents that stand together in a turn. */
export function TaskGroup({ calls }: { calls: readonly ToolCall[] }) {
  return (
    <LateTexts of={texts} fallback={<div className="h-24" />}>
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

/** Many of them: totals, and a line for each. Open while their turn is on its way. */
function Tree({ tasks }: { tasks: readonly ShownTask[] }) {
  const t = useT("tasks");
  const shown = tasks.filter(({ status }) => status !== "deferred");
  const [chosen, setChosen] = useState<boolean | null>(null);
  const { running, turns } = useSession();
  const open = chosen ?? (running && taskCalls(turns.slice(-1)).some(({ id }) => id === tasks[0]?.id));
  useOpenFor(shown, () => setChosen(true));
  const id = useId();
  const counts = useCounts(tasks);
  const spent = useSpent(shown);
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
          <span className="text-xs text-muted-foreground">{counts}</span>
          <Small className="@md:ml-auto">{spent.join(" · ")}</Small>
        </span>
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
  "loop",
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
