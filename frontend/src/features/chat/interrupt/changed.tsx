"use client";
import { TriangleAlert } from "lucide-react";
import { useT } from "@/i18n";
import type { About, Definition } from "./about";
import { LongText } from "./long-text";

/** A tool that its server redefined after the person was asked: both definitions, side by side. */
export function Changed({ changed: { before, now } }: { changed: NonNullable<About["changed"]> }) {
  const t = useT("decisions.changed");
  return (
    <section className="flex flex-col gap-2 rounded-lg border border-warning/40 bg-warning-soft p-3">
      <p className="flex items-start gap-2 text-[13px] leading-5 font-medium">
        <TriangleAlert aria-hidden className="mt-0.5 size-4 shrink-0 text-warning" />
        {t("warning")}
      </p>
      <div className="grid gap-2 sm:grid-cols-2">
        <Side title={t("before")} definition={before} />
        <Side title={t("now")} definition={now} />
      </div>
    </section>
  );
}

function Side({ title, definition }: { title: string; definition: Definition }) {
  const t = useT("decisions.changed");
  return (
    <div className="min-w-0 rounded-md border bg-card">
      <p className="border-b px-3 py-1 text-xs text-muted-foreground">{title}</p>
      <LongText text={definition.description ?? ""} />
      <LongText
        className="border-t"
        text={`${t("arguments")} ${(definition.arguments ?? []).join(", ") || "–"}`}
      />
    </div>
  );
}
