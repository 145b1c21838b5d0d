"use client";
import { FoldVertical } from "lucide-react";
import { useId, useState } from "react";
import { Markdown } from "@/features/markdown";
import { useLocale, useT } from "@/i18n";
import { formatTokens } from "@/lib/format";
import { OpenMark } from "@/ui/open-mark";
import type { SummaryMark as Mark } from "./summaries";

/** A line below the last message that a summary stands for; opens what the model reads instead. */
export default function SummaryMark({ mark }: { mark: Mark }) {
  const t = useT("chat.summary");
  const [locale] = useLocale();
  const [open, setOpen] = useState(false);
  const id = useId();
  const when =
    mark.madeAt && new Date(mark.madeAt).toLocaleString(locale, { dateStyle: "medium", timeStyle: "short" });
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
      {open && (
        <div
          id={id}
          className="mt-2 animate-in rounded-2xl border bg-card p-4 duration-150 fade-in-0 motion-reduce:animate-none"
        >
          <p className="mb-2 text-xs text-pretty text-muted-foreground">
            {t("explained")} {when}
          </p>
          <Markdown text={mark.text} />
        </div>
      )}
    </section>
  );
}
