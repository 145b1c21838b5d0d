"use client";
import { Suspense, use, useId, useState } from "react";
import { useLocale, useT } from "@/i18n";
import { formatDuration } from "@/lib/format";
import { SubAgents } from "../chat-context";
import { usePartTimes, type PartTime } from "./clock";
import { Markdown } from "@/features/markdown";
import { OpenMark } from "@/ui/open-mark";
import { useHolds } from "../find/find";
import { STEP, useOpenFor, useStepMark } from "./shown-step";
import {
  countFailed,
  countNotMade,
  countWork,
  segmentsOf,
  splitRunning,
  waitsItsTurn,
} from "./steps-summary";
import { Thinking } from "./thinking";
import { ToolCard } from "../tool-card";
import type { Part } from "../thread/turns";

type Times = Record<string, PartTime>;

interface StepsProps {
  steps: Part[];
  /** The agent works on the last of them; its answer has not started. */
  working: boolean;
  /** Of the whole turn, in milliseconds; null: not known. */
  duration: number | null;
}

/** The work of a turn: what is done folded into a line, what is going on open. */
export function Steps({ steps, working, duration }: StepsProps) {
  const times = usePartTimes(steps);
  const segments = segmentsOf(steps);
  const Group = use(SubAgents);
  return (
    <div className="flex flex-col">
      {segments.map((segment, i) => {
        const last = i === segments.length - 1;
        if (segment.kind === "tasks")
          return (
            <Suspense key={segment.id} fallback={<div className="h-24" />}>
              <Group calls={segment.calls} />
            </Suspense>
          );
        if (segment.kind === "steering") return <Steering key={segment.id} text={segment.text} />;
        if (working && last) return <Running key={segment.id} parts={segment.parts} times={times} />;
        const took = segments.length === 1 ? duration : null;
        return <Folded key={segment.id} parts={segment.parts} times={times} duration={took} />;
      })}
    </div>
  );
}

function Running({ parts, times }: { parts: Part[]; times: Times }) {
  const { former, current } = splitRunning(parts);
  return (
    <>
      {former.length > 0 && <Folded parts={former} times={times} duration={seenDuration(former, times)} />}
      <Rows parts={current} times={times} current />
    </>
  );
}

/** Steps in one line, which opens. */
function Folded({ parts, times, duration }: { parts: Part[]; times: Times; duration: number | null }) {
  const t = useT("chat.steps");
  const [opened, setOpen] = useState(false);
  const holds = useHolds(parts.flatMap((part) => (part.kind === "text" ? [part.text] : [])));
  useOpenFor(parts, () => setOpen(true));
  const open = opened || holds;
  const id = useId();
  const summary = useSummary(parts, duration);
  const failed = countFailed(parts);
  const notMade = countNotMade(parts);
  if (parts.length === 1 || parts.every((part) => part.kind === "text"))
    return <Rows parts={parts} times={times} />;
  return (
    <div>
      <button
        type="button"
        aria-expanded={open}
        aria-controls={open ? id : undefined}
        title={open ? undefined : t("details")}
        className="-ml-1.5 flex min-h-8 max-w-[calc(100%+0.75rem)] items-center gap-1.5 rounded-md px-1.5 text-left text-[13px] leading-5 text-muted-foreground transition-colors hover:bg-accent/60 hover:text-foreground pointer-coarse:min-h-10"
        onClick={() => setOpen(!open)}
      >
        {summary && <span className="min-w-0 truncate">{summary}</span>}
        {failed > 0 && <span className="shrink-0 text-destructive">· {t("failed", { n: failed })}</span>}
        {notMade > 0 && (
          <span className="shrink-0">
            {summary && "· "}
            {t("notMade", { n: notMade })}
          </span>
        )}
        <OpenMark open={open} />
      </button>
      {open && (
        <div
          id={id}
          className="mt-0.5 mb-2 ml-1 animate-in border-l pl-4 duration-150 fade-in-0 motion-reduce:animate-none"
        >
          <Rows parts={parts} times={times} />
        </div>
      )}
    </div>
  );
}

function Rows({ parts, times, current = false }: { parts: Part[]; times: Times; current?: boolean }) {
  return parts.map((part) => (
    <Row key={part.id} part={part} time={times[part.id]} current={current && !waitsItsTurn(part, parts)} />
  ));
}

function Row({ part, time, current }: { part: Part; time?: PartTime; current: boolean }) {
  const t = useT("chat.steps");
  return (
    <div {...useStepMark(part.id)} data-opens="" className={STEP}>
      {part.kind === "tool" ? (
        <ToolCard call={part.call} time={time} current={current} />
      ) : part.kind === "thinking" ? (
        <Thinking text={part.text} streaming={part.streaming} time={time} />
      ) : (
        <Markdown text={part.text} streaming={part.kind === "text" && part.streaming} className="py-1.5" />
      )}
      {part.kind === "text" && part.brokeOff && (
        <p className="pb-1.5 text-[13px] text-muted-foreground">{t("brokeOff")}</p>
      )}
    </div>
  );
}

function Steering({ text }: { text: string }) {
  const t = useT("chat.steps");
  return (
    <div className="my-3 flex flex-col items-end gap-1">
      <span className="pr-1 text-xs text-muted-foreground">{t("steered")}</span>
      <div className="max-w-[85%] rounded-2xl rounded-br-md bg-secondary px-4 py-2.5 text-[15px] leading-relaxed break-words whitespace-pre-wrap">
        {text}
      </div>
    </div>
  );
}

/** "Read 3 files, ran 2 commands · 12s"; nothing if nothing was done. */
function useSummary(parts: Part[], duration: number | null): string {
  const t = useT("chat");
  const [locale] = useLocale();
  const time = duration !== null && duration >= 1000 ? formatDuration(duration, locale) : null;
  const work = countWork(parts).map(({ work, count }) => t(`did.${work}`, { n: count }));
  if (!work.length && parts.every((part) => part.kind === "tool")) return "";
  if (!work.length) return capital(time ? t("did.thoughtFor", { time }) : t("did.thought"), locale);
  return [capital(work.join(t("steps.separator")), locale), time].filter(Boolean).join(" · ");
}

const capital = (text: string, locale: string) => text.charAt(0).toLocaleUpperCase(locale) + text.slice(1);

/** From the first to the last moment that was seen. */
function seenDuration(parts: Part[], times: Times): number | null {
  const seen = parts.flatMap((part) => times[part.id] ?? []);
  if (!seen.length) return null;
  return (
    Math.max(...seen.map((time) => time.end ?? time.start)) - Math.min(...seen.map((time) => time.start))
  );
}
