"use client";
import { UnfoldVertical } from "lucide-react";
import { useState, type ReactNode } from "react";
import { useT } from "@/i18n";
import { cn } from "@/lib/cn";
import { countChanges, diffLines, folded, hunksOf, type DiffLine, type Piece } from "@/lib/line-diff";

export interface DiffViewProps {
  before: string;
  after: string;
  filename: string;
  className?: string;
}

/** What changed between two small texts, line by line. */
export function DiffView({ before, after, ...rest }: DiffViewProps) {
  return <Pieces pieces={folded(diffLines(before, after))} {...rest} />;
}

/** What a unified diff says. */
export function PatchView({ patch, ...rest }: { patch: string; filename: string; className?: string }) {
  return <Pieces pieces={hunksOf(patch)} apart {...rest} />;
}

interface PiecesProps {
  pieces: Piece[];
  /** Between them lie lines that are not known. */
  apart?: boolean;
  filename: string;
  className?: string;
}

function Pieces({ pieces, apart = false, filename, className }: PiecesProps) {
  const t = useT("common.diff");
  const [opened, setOpened] = useState<ReadonlySet<number>>(new Set());
  const { added, removed } = countChanges(pieces.flatMap((piece) => piece.lines));
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
            {pieces.map((piece, index) =>
              piece.kind === "fold" && !opened.has(index) ? (
                <Fold key={index} piece={piece} onOpen={() => setOpened(new Set(opened).add(index))} />
              ) : (
                <Rows key={index} lines={piece.lines} apart={apart && index > 0} />
              ),
            )}
          </div>
        </div>
      )}
    </figure>
  );
}

function Fold({ piece, onOpen }: { piece: Piece; onOpen: () => void }) {
  const t = useT("common.diff");
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

function Rows({ lines, apart }: { lines: DiffLine[]; apart: boolean }) {
  return lines.map((line, index) => (
    <div
      key={index}
      className={cn(
        "flex pr-3",
        apart && index === 0 && "mt-1 border-t border-dashed pt-1",
        COLOURS[line.kind],
      )}
    >
      <Numbers>{line.before}</Numbers>
      <Numbers>{line.after}</Numbers>
      <Content line={line} />
    </div>
  ));
}

function Content({ line }: { line: DiffLine }) {
  const t = useT("common.diff");
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
