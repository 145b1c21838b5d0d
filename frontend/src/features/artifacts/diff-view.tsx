"use client";
import { UnfoldVertical } from "lucide-react";
import { useState, type ReactNode } from "react";
import { useT } from "@/i18n";
import { cn } from "@/lib/cn";
import { countChanges, diffLines, folded, type DiffLine, type Piece } from "./line-diff";

export interface DiffViewProps {
  before: string;
  after: string;
  filename: string;
  className?: string;
}

/** What changed between two small texts, line by line. */
export function DiffView({ before, after, filename, className }: DiffViewProps) {
  const t = useT("artifacts.diff");
  const [opened, setOpened] = useState<ReadonlySet<number>>(new Set());
  const lines = diffLines(before, after);
  const { added, removed } = countChanges(lines);
  return (
    <figure
      aria-label={t("label", { name: filename })}
      className={cn("overflow-hidden rounded-lg border bg-code text-code-foreground", className)}
    >
      <figcaption className="flex min-h-8 items-center gap-2 border-b px-3 font-mono text-xs">
        <span className="min-w-0 flex-1 truncate text-muted-foreground">{filename}</span>
        {added > 0 && <span className="text-success">+{added}</span>}
        {removed > 0 && <span className="text-destructive">−{removed}</span>}
      </figcaption>
      {added + removed === 0 ? (
        <p className="px-3 py-2 text-xs text-muted-foreground">{t("none")}</p>
      ) : (
        <div
          tabIndex={0}
          className="max-h-96 overflow-auto py-1 font-mono text-xs leading-5 -outline-offset-2"
        >
          <div className="w-max min-w-full">
            {folded(lines).map((piece, index) =>
              piece.kind === "fold" && !opened.has(index) ? (
                <Fold key={index} piece={piece} onOpen={() => setOpened(new Set(opened).add(index))} />
              ) : (
                <Rows key={index} lines={piece.lines} />
              ),
            )}
          </div>
        </div>
      )}
    </figure>
  );
}

function Fold({ piece, onOpen }: { piece: Piece; onOpen: () => void }) {
  const t = useT("artifacts.diff");
  return (
    <button
      type="button"
      className="sticky left-0 flex w-full items-center gap-2 bg-muted/70 px-3 text-left font-sans leading-6 text-muted-foreground -outline-offset-2 hover:text-foreground"
      onClick={onOpen}
    >
      <UnfoldVertical aria-hidden className="size-3" />
      {t("unchanged", { n: piece.lines.length })}
    </button>
  );
}

const SIGNS = { same: " ", added: "+", removed: "−" };
const COLOURS = {
  same: "",
  added: "bg-success-soft text-success",
  removed: "bg-destructive-soft text-destructive",
};

function Rows({ lines }: { lines: DiffLine[] }) {
  return lines.map((line, index) => (
    <div key={index} className={cn("flex pr-3", COLOURS[line.kind])}>
      <Numbers>{line.before}</Numbers>
      <Numbers>{line.after}</Numbers>
      <Content line={line} />
    </div>
  ));
}

function Content({ line }: { line: DiffLine }) {
  const t = useT("artifacts.diff");
  return (
    <>
      <span className="w-4 shrink-0 text-center select-none" aria-hidden>
        {SIGNS[line.kind]}
      </span>
      <span className="whitespace-pre">
        {line.kind !== "same" && <span className="sr-only">{t(line.kind)}: </span>}
        {line.text || " "}
      </span>
    </>
  );
}

function Numbers({ children }: { children: ReactNode }) {
  return (
    <span aria-hidden className="w-9 shrink-0 pr-2 text-right text-muted-foreground tabular-nums select-none">
      {children}
    </span>
  );
}
