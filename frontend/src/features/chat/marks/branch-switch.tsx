"use client";
import { ChevronLeft, ChevronRight } from "lucide-react";
import { toast } from "@/ui/toast";
import { useT } from "@/i18n";
import { IconButton } from "@/ui/icon-button";
import { useChat } from "../chat-context";
import type { Turn } from "../thread/turns";
import { useAction } from "../use-action";

/** ‹ 2 / 3 › between the versions of a message, each with what followed from it. */
export function BranchSwitch({
  turnId,
  branch,
  disabled,
}: {
  turnId: string;
  branch: NonNullable<Turn["branch"]>;
  disabled: boolean;
}) {
  const t = useT("chat.branch");
  const failed = useT("chat.answer")("failed");
  const { actions } = useChat();
  const { pending, run } = useAction();
  const { index, count } = branch;
  const show = async (next: number) => {
    if (!(await run(() => actions.showBranch(turnId, next)))) toast.error(failed);
  };
  /** Not `disabled`: who is at the first or last version by that keeps the focus. */
  const to = (next: number) => {
    const off = disabled || pending || next < 0 || next >= count;
    return { "aria-disabled": off, onClick: () => void (off || show(next)) };
  };
  return (
    <div role="group" aria-label={t("label")} className="flex items-center text-xs text-muted-foreground">
      <IconButton label={t("previous")} size="icon-xs" {...to(index - 1)}>
        <ChevronLeft aria-hidden />
      </IconButton>
      <span className="min-w-8 text-center tabular-nums">{t("at", { index: index + 1, count })}</span>
      <IconButton label={t("next")} size="icon-xs" {...to(index + 1)}>
        <ChevronRight aria-hidden />
      </IconButton>
    </div>
  );
}
