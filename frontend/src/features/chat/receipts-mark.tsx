"use client";
import { BadgeCheck, ReceiptText } from "lucide-react";
import { Suspense, useState } from "react";
import { useT } from "@/i18n";
import { afterPage } from "@/lib/after-page";
import { cn } from "@/lib/cn";
import { Popover, PopoverContent, PopoverTrigger } from "@/ui/popover";
import { Spinner } from "@/ui/spinner";
import type { Turn } from "./turns";

const Receipts = afterPage(() => import("./receipts"));

/** Whether the work of a turn bears out its answer; opens what was done. Turns without work have none. */
export function ReceiptsMark({ threadId, turn }: { threadId: string; turn: Turn }) {
  const t = useT("chat.receipts");
  const [open, setOpen] = useState(false);
  const { runId, verification } = turn;
  const worked = verification === "verified" || turn.steps.some((part) => part.kind === "tool");
  if (!runId || !verification || !worked) return null;
  const proved = verification === "verified";
  const Icon = proved ? BadgeCheck : ReceiptText;
  return (
    <Popover open={open} onOpenChange={setOpen}>
      <PopoverTrigger
        className={cn(
          "flex items-center gap-1 rounded-md px-1.5 py-1 text-xs whitespace-nowrap transition-colors hover:bg-accent data-[state=open]:bg-accent",
          proved ? "text-success" : "text-muted-foreground",
        )}
      >
        <Icon aria-hidden className="size-3.5 shrink-0" />
        {t(proved ? "verified" : "title")}
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
