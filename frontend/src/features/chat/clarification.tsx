"use client";
import { Check, CircleHelp, CornerDownLeft } from "lucide-react";
import { focusComposer } from "@/lib/compose";
import { useT } from "@/i18n";
import { cn } from "@/lib/cn";
import { Button } from "@/ui/button";
import { useChat } from "./chat-context";
import { Markdown } from "@/features/markdown";
import type { Clarification } from "./thread/options";
import { useAction } from "./use-action";

const KINDS = [
  "missing_info",
  "ambiguous_requirement",
  "approach_choice",
  "risk_confirmation",
  "suggestion",
] as const;

interface ClarificationCardProps {
  asked: Clarification;
  busy: boolean;
  /** The person wants to write an answer. */
  onOwn?: () => void;
}

/** A question of the agent: one press on an option answers it, everything else is written below. */
export function ClarificationCard({ asked, busy, onOwn = focusComposer }: ClarificationCardProps) {
  const t = useT("chat.clarification");
  const failed = useT("chat.question");
  const { actions } = useChat();
  const { pending, error, run } = useAction();
  const kind = KINDS.find((one) => one === asked.kind);
  const open = asked.answer === null && !busy;
  return (
    <section aria-label={t("title")} className="my-2 rounded-2xl border bg-card p-4">
      <p className="mb-2 flex items-center gap-2 text-xs font-medium text-muted-foreground">
        <CircleHelp aria-hidden className="size-4 text-primary" />
        {kind ? t(`kind.${kind}`) : t("title")}
      </p>
      {asked.context && <Markdown text={asked.context} className="prose-quiet mb-1.5" />}
      <Markdown text={asked.question} className="font-medium" />
      {asked.options.length > 0 && (
        <ul aria-label={t("options")} className="mt-3 flex flex-col gap-2">
          {asked.options.map((option, i) => (
            <li key={`${i} ${option.label}`}>
              <Button
                variant="outline"
                disabled={!open || pending}
                aria-pressed={asked.answer === null ? undefined : asked.answer === option.label}
                className={cn(
                  "h-auto min-h-10 w-full justify-start py-2 text-left font-normal whitespace-normal",
                  asked.answer === option.label && "border-primary bg-primary-soft disabled:opacity-100",
                )}
                onClick={() => run(() => actions.send(option.label))}
              >
                <span aria-hidden className="w-4 shrink-0 text-xs text-muted-foreground tabular-nums">
                  {i + 1}
                </span>
                <span className="min-w-0 flex-1 break-words">
                  {option.label}
                  {option.description && (
                    <span className="block text-[13px] text-muted-foreground">{option.description}</span>
                  )}
                </span>
                {asked.answer === option.label && <Check aria-hidden className="text-primary" />}
              </Button>
            </li>
          ))}
        </ul>
      )}
      {error && <p className="mt-2 text-xs text-destructive">{failed("failed", { message: error })}</p>}
      {open && (
        <Button variant="ghost" size="sm" className="mt-2 -ml-2 text-muted-foreground" onClick={onOwn}>
          <CornerDownLeft aria-hidden />
          {t("own")}
        </Button>
      )}
    </section>
  );
}
