"use client";
import { Network } from "lucide-react";
import { useSession } from "@/features/chat";
import { LateTexts, useT } from "@/i18n";
import { focusComposer } from "@/lib/compose";
import { isAtWork } from "./parts";
import { TaskRow } from "./task-row";
import { taskCalls, useTasks } from "./use-tasks";
import { texts } from "./texts";

/** Sub-agents in the background, above the message field, until their results have come. */
export function TaskDock() {
  return (
    <LateTexts of={texts}>
      <Dock />
    </LateTexts>
  );
}

function Dock() {
  const t = useT("tasks");
  const { turns } = useSession();
  const calls = taskCalls(turns.slice(-1)).filter((call) => call.args.background === true);
  const tasks = useTasks(calls).filter(isAtWork);
  if (!tasks.length) return null;
  const title = t("inBackground", { n: tasks.length });
  return (
    <section aria-label={title} className="animate-rise px-4 motion-reduce:animate-none">
      <div className="@container overflow-hidden rounded-t-2xl border border-b-0 bg-card px-2 pb-1">
        <p className="flex h-8 items-center gap-2.5 px-1.5 text-xs text-muted-foreground">
          <Network aria-hidden className="size-4 shrink-0" />
          {title}
        </p>
        <ul className="max-h-40 overflow-y-auto">
          {tasks.map((task) => (
            <TaskRow key={task.id} task={task} onStopped={focusComposer} />
          ))}
        </ul>
      </div>
    </section>
  );
}
