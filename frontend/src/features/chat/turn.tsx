"use client";
import { memo, Suspense, useState } from "react";
import { useLocale, useT } from "@/i18n";
import { afterPage } from "@/lib/late";
import { formatDuration } from "@/lib/format";
import { cn } from "@/lib/cn";
import { Answer, AnswerActions, StoppedMark } from "./answer";
import { Markdown } from "@/features/markdown";
import { ClarificationCard } from "./clarification";
import { useNow } from "./steps/clock";
import { Question } from "./question";
import { Steps } from "./steps/steps";
import { TimelineButton } from "./marks/timeline-button";
import type { Retry } from "./thread/thread-state";
import type { Part, Turn } from "./thread/turns";

const SummaryMark = afterPage(() => import("./marks/summary-mark"));
const CutShort = afterPage(() => import("./cut-short"));
const RunError = afterPage(() => import("./run-error"));

interface TurnProps {
  turn: Turn;
  /** The same for all versions of its question. */
  place: string;
  last: boolean;
  /** A run is going on in the thread. */
  busy: boolean;
}

/** A question with all that followed from it. Only the running one changes with each token. */
export const TurnView = memo(function TurnView({ turn, place, last, busy }: TurnProps) {
  const running = turn.state === "running";
  const open = running || turn.state === "waiting";
  const steps = turn.clarification ? turn.steps.filter((part) => !isQuestion(part)) : turn.steps;
  const lead = turn.clarification && steps.at(-1)?.kind === "text" ? steps.pop() : null;
  return (
    <article className="group/turn flex flex-col gap-1 pb-6">
      {turn.question && <Question turn={turn} question={turn.question} place={place} busy={busy} />}
      {steps.length > 0 && <Steps steps={steps} working={open && !turn.answer} duration={durationOf(turn)} />}
      {lead?.kind === "text" && <Markdown text={lead.text} className="py-1" />}
      <Answer turn={turn} />
      {!open && turn.stopReason && (
        <Suspense>
          <CutShort turn={turn} last={last} busy={busy} />
        </Suspense>
      )}
      {turn.clarification && <ClarificationCard asked={turn.clarification} busy={busy} />}
      {turn.state === "waiting" && <TimelineButton runId={turn.runId} />}
      {turn.state === "stopped" && <StoppedMark last={last} busy={busy} />}
      {turn.error && (
        <Suspense>
          <RunError turn={turn} error={turn.error} busy={busy} />
        </Suspense>
      )}
      {!open && (turn.answer || turn.steps.length > 0) && !turn.error && (
        <AnswerActions turn={turn} last={last} busy={busy} />
      )}
      {turn.marks.map((mark) => (
        <Suspense key={mark.upto}>
          <SummaryMark mark={mark} />
        </Suspense>
      ))}
    </article>
  );
});

/** It has a card of its own. */
const isQuestion = (part: Part) =>
  part.kind === "tool" && part.call.name === "ask_clarification" && part.call.status === "done";

interface WorkingProps {
  runId: string | null;
  startedAt: string | null;
  connection: "live" | "retrying";
  retrying: Retry | null;
  /** Seconds for which the model has sent nothing. */
  silence: number | null;
}

/**
 * Stands below the conversation, not in it: words that come push nothing. As high as the actions that follow, so that nothing
 * moves when the run ends.
 */
export function Working({ runId, startedAt, connection, retrying, silence }: WorkingProps) {
  const t = useT("chat.steps");
  const [locale] = useLocale();
  const now = useNow(true);
  const since = startedAt ? now - Date.parse(startedAt) : 0;
  const well = connection === "live" && !retrying && silence === null;
  const [heard, setHeard] = useState({ silence, at: now });
  if (heard.silence !== silence) setHeard({ silence, at: now });
  const waited = silence === null ? 0 : silence * 1000 + Math.max(0, now - heard.at);
  return (
    <p className="mx-auto flex min-h-8 w-full max-w-3xl items-center gap-2.5 px-4 text-[13px] text-muted-foreground sm:px-6 pointer-coarse:min-h-10">
      <span
        aria-hidden
        className={cn("size-2 shrink-0 animate-breathe rounded-full", well ? "bg-primary" : "bg-warning")}
      />
      <span className="min-w-0 break-words">
        {connection === "live" && silence !== null
          ? t("silent", { time: formatDuration(Math.floor(waited / 1000) * 1000, locale) })
          : connection === "live"
            ? retrying
              ? t(retryKey(retrying), { model: retrying.fallback })
              : t("working")
            : t("reconnecting")}
      </span>
      {since >= 1000 && silence === null && (
        <span className="text-xs tabular-nums">
          {formatDuration(Math.floor(since / 1000) * 1000, locale)}
        </span>
      )}
      <TimelineButton runId={runId} />
    </p>
  );
}

const retryKey = ({ reason, fallback }: Retry) =>
  fallback ? "retry.fallback" : reason === "broken_off" ? "retry.brokenOff" : "retry.again";

function durationOf(turn: Turn): number | null {
  return turn.startedAt && turn.endedAt ? Date.parse(turn.endedAt) - Date.parse(turn.startedAt) : null;
}
