"use client";
import { PanelRight } from "lucide-react";
import { useId, useState } from "react";
import { STEP, useStepMark } from "@/features/chat";
import { useT } from "@/i18n";
import { cn } from "@/lib/cn";
import { Badge } from "@/ui/badge";
import { OpenMark } from "@/ui/open-mark";
import { Meta, StatusIcon, StopButton, useLine, useOpenTask } from "./parts";
import { Transcript } from "./transcript";
import type { ShownTask } from "./use-tasks";

/** A sub-agent in the conversation: what it is at, and what it cost. Its steps unfold; the whole opens beside the chat. */
export function TaskCard({ task }: { task: ShownTask }) {
  const t = useT("tasks");
  const { isOpen, toggle } = useOpenTask(task.id);
  const [unfolded, setUnfolded] = useState(false);
  const line = useLine(task);
  const id = useId();
  const { status } = task;
  return (
    <li
      {...useStepMark(task.id)}
      className={cn(STEP, "@container rounded-xl border bg-card", isOpen && "border-primary/50")}
    >
      <div className="flex items-start gap-1 py-1.5 pr-1.5">
        <button
          type="button"
          aria-expanded={isOpen}
          title={t("open", { name: task.description })}
          className="group/open flex min-w-0 flex-1 flex-col gap-0.5 rounded-lg px-3 py-1 text-left"
          onClick={toggle}
        >
          <span className="flex w-full min-w-0 items-center gap-2 text-sm leading-5 font-medium">
            <StatusIcon status={status} />
            <span className="min-w-0 truncate group-hover/open:underline group-hover/open:decoration-border group-hover/open:underline-offset-3">
              {task.description}
            </span>
            <Badge variant="secondary" className="hidden font-normal @sm:inline-flex">
              {task.type}
            </Badge>
            {task.background && (
              <Badge variant="outline" className="hidden font-normal @lg:inline-flex">
                {t("background")}
              </Badge>
            )}
          </span>
          <span
            className={cn(
              "w-full truncate pl-6 text-[13px] leading-5 text-muted-foreground",
              status === "failed" && "text-destructive",
              status === "running" && "text-shimmer",
            )}
          >
            {line}
          </span>
        </button>
        <div className="flex h-7 shrink-0 items-center gap-1">
          <StopButton task={task} />
          <PanelRight aria-hidden className="mx-1.5 hidden size-4 text-muted-foreground @sm:block" />
        </div>
      </div>
      {status !== "preparing" && (
        <div className="-mt-1.5 flex flex-wrap items-center gap-x-2 pr-3 pb-1.5 pl-7.5">
          <button
            type="button"
            aria-expanded={unfolded}
            aria-controls={unfolded ? id : undefined}
            className="flex min-h-6 items-center gap-1 rounded-md px-1.5 text-xs text-muted-foreground hover:bg-accent/60 hover:text-foreground pointer-coarse:min-h-10"
            onClick={() => setUnfolded(!unfolded)}
          >
            {t("steps")}
            <OpenMark open={unfolded} />
          </button>
          <Meta task={task} />
        </div>
      )}
      {unfolded && (
        <div id={id} className="border-t px-4 py-2.5">
          <Transcript task={task} />
        </div>
      )}
    </li>
  );
}
