"use client";
import { BadgeAlert, BadgeCheck, ReceiptText } from "lucide-react";
import { Suspense, useState } from "react";
import { useT } from "@/i18n";
import { afterPage } from "@/lib/late";
import { cn } from "@/lib/cn";
import { Popover, PopoverContent, PopoverTrigger } from "@/ui/popover";
import { Spinner } from "@/ui/spinner";
import type { Turn, Verification } from "../thread/turns";

const Receipts = afterPage(() => import("./receipts"));

const LOOKS: Partial<Record<Verification, { icon: typeof BadgeCheck; tone: string }>> = {
  verified: { icon: BadgeCheck, tone: "text-success" },
  contradicted: { icon: BadgeAlert, tone: "text-destructive" },
};

/** Evidence for the answer of a turn; opens the list of work done. Turns without work and claims have none. */
export function ReceiptsMark({ threadId, turn }: { threadId: string; turn: Turn }) {
  const t = useT("chat.receipts");
  const [open, setOpen] = useState(false);
  const { lastRunId: runId, verification } = turn;
  const worked = verification !== null || turn.steps.some((part) => part.kind === "tool");
  if (!runId || turn.state === "running" || turn.clarification || !worked) return null;
  const { icon: Icon, tone } = (verification && LOOKS[verification]) ?? {
    icon: ReceiptText,
    tone: "text-muted-foreground",
  };
  return (
    <Popover open={open} onOpenChange={setOpen}>
      <PopoverTrigger
        className={cn(
          "flex items-center gap-1 rounded-md px-1.5 py-1 text-xs whitespace-nowrap transition-colors hover:bg-accent data-[state=open]:bg-accent",
          tone,
        )}
      >
        <Icon aria-hidden className="size-3.5 shrink-0" />
        {t(verification ?? "title")}
      </PopoverTrigger>
      <PopoverContent
        align="start"
        className="max-h-96 w-96 max-w-[calc(100vw-2rem)] overflow-y-auto"
        aria-label={t("title")}
      >
        <Suspense fallback={<Spinner className="mx-auto my-8" />}>
          <Receipts threadId={threadId} runId={runId} />
        </Suspense>
      </PopoverContent>
    </Popover>
  );
}
