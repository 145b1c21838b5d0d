"use client";
import { FoldVertical } from "lucide-react";
import { useId, useState } from "react";
import { Markdown } from "@/features/markdown";
import { LateTexts, useLocale, useT } from "@/i18n";
import { formatTokens } from "@/lib/format";
import { Badge } from "@/ui/badge";
import { OpenMark } from "@/ui/open-mark";
import { SegmentedControl } from "@/ui/segmented";
import { useSession } from "../thread/session";
import type { SummaryMark as Mark } from "../thread/summaries";
import { detailTexts } from "../texts";

/** A line below the last message that a summary stands for; opens what the model reads instead, and what it replaced. */
export default function SummaryMark({ mark }: { mark: Mark }) {
  return (
    <LateTexts of={detailTexts}>
      <Line mark={mark} />
    </LateTexts>
  );
}

function Line({ mark }: { mark: Mark }) {
  const t = useT("details.summary");
  const [open, setOpen] = useState(false);
  const id = useId();
  const sizes = t("sizes", { before: formatTokens(mark.before), after: formatTokens(mark.after) });
  return (
    <section aria-label={t("title")} className="mt-4">
      <div className="flex items-center gap-3 before:h-px before:flex-1 before:bg-border after:h-px after:flex-1 after:bg-border">
        <button
          type="button"
          aria-expanded={open}
          aria-controls={open ? id : undefined}
          className="flex min-h-8 items-center gap-1.5 rounded-md px-2 text-left text-[13px] leading-5 text-muted-foreground transition-colors hover:bg-accent/60 hover:text-foreground pointer-coarse:min-h-10"
          onClick={() => setOpen(!open)}
        >
          <FoldVertical aria-hidden className="size-3.5 shrink-0" />
          <span>
            {t("title")} <span className="whitespace-nowrap tabular-nums">· {sizes}</span>
          </span>
          <OpenMark open={open} />
        </button>
      </div>
      {open && <Opened id={id} mark={mark} />}
    </section>
  );
}

function Opened({ id, mark }: { id: string; mark: Mark }) {
  const t = useT("details.summary");
  const [locale] = useLocale();
  const [view, setView] = useState<"text" | "replaced">("text");
  const when =
    mark.madeAt && new Date(mark.madeAt).toLocaleString(locale, { dateStyle: "medium", timeStyle: "short" });
  return (
    <div
      id={id}
      className="mt-2 animate-in rounded-2xl border bg-card p-4 duration-150 fade-in-0 motion-reduce:animate-none"
    >
      <p className="mb-3 text-xs text-pretty text-muted-foreground">
        {t("explained")} {when}
      </p>
      <SegmentedControl
        label={t("shown")}
        size="sm"
        className="mb-3"
        value={view}
        onValueChange={setView}
        options={[
          { value: "text", label: t("text") },
          { value: "replaced", label: t("replaced") },
        ]}
      />
      {view === "text" ? <Markdown text={mark.text} /> : <Replaced mark={mark} />}
    </div>
  );
}

/** The messages above, each in two lines. Those that are pinned the model still reads. */
function Replaced({ mark }: { mark: Mark }) {
  const t = useT("details.summary");
  const { turns } = useSession();
  const end = turns.findIndex((turn) => turn.marks.some(({ upto }) => upto === mark.upto));
  const kept = (id: string) => mark.pinned.includes(id) && <Badge variant="secondary">{t("kept")}</Badge>;
  return (
    <ol className="flex max-h-80 flex-col gap-3 overflow-y-auto text-[13px] leading-relaxed" tabIndex={0}>
      {turns.slice(0, end + 1).map(({ id, question, answer, steps }) => (
        <li key={id} className="flex flex-col gap-0.5">
          {question && (
            <p className="line-clamp-2 break-words">
              <span className="font-medium">{t("you")}:</span> {question.text} {kept(question.id)}
            </p>
          )}
          {(answer || steps.length > 0) && (
            <p className="line-clamp-2 break-words text-muted-foreground">
              <span className="font-medium">{t("agent")}:</span>{" "}
              {steps.length > 0 && `(${t("steps", { n: steps.length })}) `}
              {answer?.text} {answer && kept(answer.id)}
            </p>
          )}
        </li>
      ))}
    </ol>
  );
}
