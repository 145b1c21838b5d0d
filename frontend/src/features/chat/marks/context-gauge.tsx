"use client";
import { Suspense, useState } from "react";
import { useT } from "@/i18n";
import { cn } from "@/lib/cn";
import { afterPage } from "@/lib/late";
import { Popover, PopoverContent, PopoverTrigger } from "@/ui/popover";
import { Spinner } from "@/ui/spinner";
import { SimpleTooltip } from "@/ui/tooltip";
import { useSession } from "../thread/session";

const ContextTable = afterPage(() => import("./context-table"));

const RADIUS = 6.5;
const ROUND = 2 * Math.PI * RADIUS;

/** A small ring that shows how full the model's context is; opens the table of its content. */
export function ContextGauge() {
  const t = useT("chat.usage");
  const { context, threadId } = useSession();
  const [open, setOpen] = useState(false);
  if (!context?.window || threadId === null) return null;
  const { used, window } = context;
  const part = Math.min(1, used / window);
  const tone = part < 0.75 ? "text-primary" : part < 0.9 ? "text-warning" : "text-destructive";
  const name = t("context", { percent: Math.round(part * 100) });
  return (
    <Popover open={open} onOpenChange={setOpen}>
      <SimpleTooltip label={name}>
        <PopoverTrigger
          aria-label={name}
          className="flex size-8 items-center justify-center rounded-md transition-colors hover:bg-accent data-[state=open]:bg-accent pointer-coarse:size-10"
        >
          <svg aria-hidden viewBox="0 0 16 16" className={cn("size-4 -rotate-90", tone)}>
            <circle cx="8" cy="8" r={RADIUS} fill="none" strokeWidth="2.5" className="stroke-border" />
            <circle
              cx="8"
              cy="8"
              r={RADIUS}
              fill="none"
              stroke="currentColor"
              strokeWidth="2.5"
              strokeLinecap="round"
              strokeDasharray={`${Math.max(0.02, part) * ROUND} ${ROUND}`}
            />
          </svg>
        </PopoverTrigger>
      </SimpleTooltip>
      <PopoverContent align="end" className="w-80" aria-label={name}>
        <Suspense fallback={<Spinner className="mx-auto my-8" />}>
          <ContextTable threadId={threadId} onClose={() => setOpen(false)} />
        </Suspense>
      </PopoverContent>
    </Popover>
  );
}
