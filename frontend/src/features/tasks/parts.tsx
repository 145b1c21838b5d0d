"use client";
import {
  CircleCheck,
  CircleDashed,
  CircleStop,
  CircleX,
  ClockAlert,
  Hand,
  Hourglass,
  LoaderCircle,
  type LucideIcon,
  Repeat,
} from "lucide-react";
import type { ReactNode } from "react";
import { describe, useAction, useCost, useNow, useSession } from "@/features/chat";
import { useLocale, useT } from "@/i18n";
import { threadApi } from "@/lib/api";
import { cn } from "@/lib/cn";
import { formatDuration, formatTokens } from "@/lib/format";
import { http } from "@/lib/http";
import { taskPanel, usePanel } from "@/lib/route";
import { IconButton } from "@/ui/icon-button";
import { toast } from "@/ui/toast";
import type { ShownTask, Status } from "./use-tasks";

const ICONS: { [One in Status]: [LucideIcon, string] } = {
  preparing: [CircleDashed, "text-muted-foreground"],
  running: [LoaderCircle, "animate-spin text-primary"],
  waiting: [Hand, "text-warning"],
  completed: [CircleCheck, "text-success"],
  turn_limit: [Hourglass, "text-warning"],
  loop: [Repeat, "text-warning"],
  failed: [CircleX, "text-destructive"],
  timed_out: [ClockAlert, "text-warning"],
  cancelled: [CircleStop, "text-muted-foreground"],
  deferred: [Hourglass, "text-muted-foreground"],
};

export function StatusIcon({ status }: { status: Status }) {
  const t = useT("tasks.status");
  const [Icon, look] = ICONS[status];
  return (
    <>
      <Icon aria-hidden className={cn("size-4 shrink-0", look)} />
      <span className="sr-only">{t(status)}</span>
    </>
  );
}

export const isAtWork = ({ status }: ShownTask) => status === "running" || status === "waiting";

/** Current activity or outcome, in one line. */
export function useLine(task: ShownTask): string {
  const t = useT("tasks.status");
  const chat = useT("chat.doing");
  const { status, doing } = task;
  if (status === "running" && doing) {
    const call = { id: doing.id ?? "", name: doing.name, args: doing.args };
    const { deed, subject, why } = describe({
      ...call,
      status: "running",
      result: "",
      images: [],
      output: "",
    });
    return deed === "run" && why ? why : chat(deed, { name: subject });
  }
  const told = status === "completed" ? task.text : task.error;
  const line = told.split("\n").find((one) => /\p{L}|\p{N}/u.test(one)) ?? "";
  const plain = line.replace(/^[#>\-*\s]+|\*\*|`/g, "").trim();
  if (status === "completed" && plain) return plain;
  return plain && (status === "failed" || status === "timed_out") ? `${t(status)}: ${plain}` : t(status);
}

/** Tokens, money, time, files. */
export function Meta({ task, files = true }: { task: ShownTask; files?: boolean }) {
  const t = useT("tasks");
  const spent = useSpent([task]);
  const time = useTime(task);
  const parts = [...spent, time, files && task.files.length > 0 && t("files", { n: task.files.length })];
  return <Small>{parts.filter(Boolean).join(" · ")}</Small>;
}

/** Time it has worked. */
export const Time = ({ task }: { task: ShownTask }) => <Small>{useTime(task)}</Small>;

export const Small = ({ children, className }: { children: ReactNode; className?: string }) => (
  <span className={cn("text-xs whitespace-nowrap text-muted-foreground tabular-nums", className)}>
    {children}
  </span>
);

/** Tokens and money of all. */
export function useSpent(tasks: readonly ShownTask[]): string[] {
  const t = useT("common");
  const cost = useCost();
  const tokens = tasks.reduce((sum, task) => sum + task.tokens, 0);
  const money = tasks.reduce((sum, task) => sum + (task.cost ?? 0), 0);
  return [
    ...(tokens > 0 ? [t("tokens", { count: formatTokens(tokens) })] : []),
    ...(money > 0 ? [cost(money)] : []),
  ];
}

function useTime({ startedAt, seconds }: ShownTask): string {
  const [locale] = useLocale();
  const now = useNow(startedAt !== null);
  const time = startedAt === null ? seconds * 1000 : Math.floor((now - startedAt) / 1000) * 1000;
  return time >= 1000 ? formatDuration(time, locale) : "";
}

interface StopProps {
  task: ShownTask;
  /** Takes the focus from the button, which goes; else what stands beside it has it. */
  onStopped?: () => void;
}

/** Ends one, and leaves the others and the agent at work. Nothing to see where there is nothing to stop. */
export function StopButton({ task, onStopped }: StopProps) {
  const t = useT("tasks");
  const { threadId } = useSession();
  const { pending, run } = useAction();
  if (task.status !== "running" || threadId === null) return null;
  const stop = async (button: HTMLElement) => {
    const path = threadApi(threadId, `/tasks/${encodeURIComponent(task.id)}/cancel`);
    const failed = (error: Error) => {
      toast.error(error.message);
      throw error;
    };
    if (!(await run(() => http.post(path).catch(failed)))) return;
    const others = [...(button.closest("li, header")?.querySelectorAll("button") ?? [])];
    if (onStopped) onStopped();
    else others.find((one) => one !== button)?.focus();
  };
  return (
    <IconButton
      label={pending ? t("stopping") : t("stop", { name: task.description })}
      size="icon-xs"
      className="text-muted-foreground hover:text-foreground"
      aria-disabled={pending}
      onClick={({ currentTarget }) => !pending && void stop(currentTarget)}
    >
      <CircleStop aria-hidden />
    </IconButton>
  );
}

/** Opens and closes the transcript of a task beside the chat. */
export function useOpenTask(id: string) {
  const panel = usePanel();
  const isOpen = panel.task === id;
  return { isOpen, toggle: () => panel.set(isOpen ? null : taskPanel(id)) };
}
