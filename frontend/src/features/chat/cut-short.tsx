"use client";
import { CircleStop } from "lucide-react";
import { LateTexts, serverTexts, useT } from "@/i18n";
import { Button } from "@/ui/button";
import { useChat } from "./chat-context";
import type { Turn } from "./thread/turns";
import { useAction } from "./use-action";

interface CutShortProps {
  turn: Turn;
  last: boolean;
  busy: boolean;
}

/** The answer ended too early, and nothing failed: why, and a button to go on. */
export default function CutShort(props: CutShortProps) {
  return (
    <LateTexts of={serverTexts}>
      <Card {...props} />
    </LateTexts>
  );
}

function Card({ turn, last, busy }: CutShortProps) {
  const t = useT("server.cutShort");
  const { actions } = useChat();
  const { pending, run } = useAction();
  if (!turn.stopReason) return null;
  return (
    <section
      aria-label={t(`${turn.stopReason}.title`)}
      className="my-2 flex flex-wrap items-center gap-x-3 gap-y-2 rounded-2xl border border-warning/40 bg-card p-4"
    >
      <div className="min-w-60 flex-1 text-sm leading-relaxed">
        <p className="flex items-center gap-2 font-medium">
          <CircleStop aria-hidden className="size-4 shrink-0 text-warning" />
          {t(`${turn.stopReason}.title`)}
        </p>
        <p className="text-muted-foreground">{t(`${turn.stopReason}.text`)}</p>
      </div>
      {last && (
        <Button
          size="sm"
          disabled={busy || pending}
          onClick={() => run(() => actions.send(t(`${turn.stopReason!}.say`)))}
        >
          {t(`${turn.stopReason}.button`)}
        </Button>
      )}
    </section>
  );
}
