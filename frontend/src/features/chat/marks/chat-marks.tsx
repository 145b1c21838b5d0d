"use client";
import { Brain, MessageCircleDashed } from "lucide-react";
import { LateTexts, useT } from "@/i18n";
import { draftThreadId } from "@/lib/draft-thread";
import { useSwitches } from "@/lib/switches";
import { Button } from "@/ui/button";
import { IconButton } from "@/ui/icon-button";
import { SimpleTooltip } from "@/ui/tooltip";
import { detailTexts } from "../texts";

/** That a chat is temporary, or that memory is off in it. A new one (null) can become temporary here. */
export default function ChatMarks({ threadId }: { threadId: string | null }) {
  return (
    <LateTexts of={detailTexts}>
      {threadId === null ? <TemporarySwitch conversation={draftThreadId()} /> : <Mark threadId={threadId} />}
    </LateTexts>
  );
}

function TemporarySwitch({ conversation }: { conversation: string }) {
  const t = useT("details.temporary");
  const { temporary, setTemporary } = useSwitches(conversation, true);
  const flip = () => setTemporary(!temporary);
  if (!temporary)
    return (
      <IconButton label={t("name")} aria-pressed={false} className="text-muted-foreground" onClick={flip}>
        <MessageCircleDashed aria-hidden />
      </IconButton>
    );
  return (
    <>
      <p className="min-w-0 truncate text-xs text-muted-foreground max-sm:sr-only">{t("text")}</p>
      <SimpleTooltip label={t("text")}>
        <Button variant="secondary" size="sm" aria-pressed className="shrink-0 text-primary" onClick={flip}>
          <MessageCircleDashed aria-hidden />
          {t("name")}
        </Button>
      </SimpleTooltip>
    </>
  );
}

function Mark({ threadId }: { threadId: string }) {
  const t = useT("details");
  const { temporary, isOn } = useSwitches(threadId);
  if (temporary)
    return (
      <SimpleTooltip label={t("temporary.text")}>
        <span
          tabIndex={0}
          className="flex shrink-0 items-center gap-1.5 rounded-md bg-secondary px-2 py-1 text-xs font-medium text-primary"
        >
          <MessageCircleDashed aria-hidden className="size-3.5" />
          {t("temporary.name")}
        </span>
      </SimpleTooltip>
    );
  if (isOn("memory")) return null;
  const name = t("memory.paused");
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
