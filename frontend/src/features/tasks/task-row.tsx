"use client";
import { STEP, useStepMark } from "@/features/chat";
import { useT } from "@/i18n";
import { cn } from "@/lib/cn";
import { Meta, StatusIcon, StopButton, Time, useLine, useOpenTask } from "./parts";
import type { ShownTask } from "./use-tasks";

/** A sub-agent in one line, which opens what it did. */
export function TaskRow({ task, onStopped }: { task: ShownTask; onStopped?: () => void }) {
  const t = useT("tasks");
  const { isOpen, toggle } = useOpenTask(task.id);
  const line = useLine(task);
  const failed = task.status === "failed";
  return (
    <li
      {...useStepMark(task.id)}
      className={cn(
        STEP,
        "flex items-center gap-1 rounded-md pr-1 transition-colors hover:bg-accent/60",
        isOpen && "bg-accent",
      )}
    >
      <button
        type="button"
        aria-expanded={isOpen}
        title={t("open", { name: task.description })}
        className="flex min-h-8 min-w-0 flex-1 items-center gap-2 rounded-md px-1.5 py-1 text-left text-[13px] leading-5 pointer-coarse:min-h-11"
        onClick={toggle}
      >
        <StatusIcon status={task.status} />
        <span className="flex min-w-0 flex-1 flex-col @md:flex-row @md:items-baseline @md:gap-2">
          <span className="min-w-0 truncate @md:max-w-[60%] @md:shrink-0">{task.description}</span>
          <span
            className={cn("min-w-0 truncate text-xs text-muted-foreground", failed && "text-destructive")}
          >
            {line}
          </span>
        </span>
        <span className="shrink-0 @md:hidden">
          <Time task={task} />
        </span>
        <span className="hidden shrink-0 @md:inline">
          <Meta task={task} files={false} />
        </span>
      </button>
      <StopButton task={task} onStopped={onStopped} />
    </li>
  );
}
