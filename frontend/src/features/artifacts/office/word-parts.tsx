"use client";
import type { ReactNode } from "react";
import { useT } from "@/i18n";

/** Notes and comments that belong to a place in the text and are stored elsewhere. */
export interface Note {
  kind: "comment" | "note";
  /** Of a comment. */
  author: string;
  content: ReactNode;
}

/** A header or footer, which stands on each page. */
export function Aside({ name, children }: { name: "header" | "footer"; children: ReactNode }) {
  const t = useT("viewers.office");
  return (
    <aside
      aria-label={t(name)}
      className="border-y border-dashed py-2 text-sm text-muted-foreground [&_p]:my-0"
    >
      <span className="text-xs font-medium">{t(name)}</span>
      {children}
    </aside>
  );
}

export function Box({ children }: { children: ReactNode }) {
  return <div className="my-3 rounded-md border px-4 py-2">{children}</div>;
}

/** Stands for a chart, an object, or a picture in a format that browsers do not draw or that lies elsewhere. */
export function NotDrawn({ words }: { words: string }) {
  const t = useT("viewers.office");
  return (
    <span className="inline-block rounded-md border border-dashed px-2 py-0.5 text-sm text-muted-foreground">
      {words ? t("notDrawnWords", { words }) : t("notDrawn")}
    </span>
  );
}

export function Notes({ notes }: { notes: Note[] }) {
  const t = useT("viewers.office");
  if (notes.length === 0) return null;
  return (
    <section aria-label={t("notes")} className="mt-8 space-y-2 border-t pt-4 text-sm">
      {notes.map(({ kind, author, content }, index) => (
        <div key={index} className="flex gap-2">
          <span className="shrink-0 text-primary tabular-nums">[{index + 1}]</span>
          <div className="min-w-0 [&_p]:my-0">
            {kind === "comment" && (
              <p className="text-xs font-medium text-muted-foreground">
                {author ? t("commentBy", { author }) : t("comment")}
              </p>
            )}
            {content}
          </div>
        </div>
      ))}
    </section>
  );
}
