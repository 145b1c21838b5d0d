"use client";
import { Brain } from "lucide-react";
import { LateTexts, useT } from "@/i18n";
import { SimpleTooltip } from "@/ui/tooltip";
import { usePaused } from "./memory-switch";

/** That memory is paused in a chat. Nothing where it is not. */
export default function PausedMark({ threadId }: { threadId: string }) {
  if (!usePaused(threadId)) return null;
  return (
    <LateTexts of="details">
      <Mark />
    </LateTexts>
  );
}

function Mark() {
  const name = useT("details.memory")("paused");
  return (
    <SimpleTooltip label={name}>
      <span
        role="img"
        aria-label={name}
        tabIndex={0}
        className="relative flex size-8 items-center justify-center rounded-md text-muted-foreground"
      >
        <Brain aria-hidden className="size-4" />
        <span aria-hidden className="absolute h-px w-5 rotate-45 bg-current" />
      </span>
    </SimpleTooltip>
  );
}
