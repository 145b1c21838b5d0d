"use client";
import { UnfoldVertical } from "lucide-react";
import { useState, type ReactNode } from "react";
import { useT } from "@/i18n";
import { cn } from "@/lib/cn";
import { Button } from "./button";
import { countChanges, diffLines, folded, hunksOf, type DiffLine, type Piece } from "@/lib/line-diff";

export interface DiffViewProps {
  before: string;
  after: string;
  filename: string;
  className?: string;
  /** Lines are broken instead of scrolled; what stands on the button behind which there are `n` more lines. */
  more?: (n: number) => string;
}

/** Differences between two small texts, line by line. */
export function DiffView({ before, after, ...rest }: DiffViewProps) {
  return <Pieces pieces={folded(diffLines(before, after))} {...rest} />;
}

/** Lines of a unified diff. */
export function PatchView({ patch, ...rest }: { patch: string; filename: string; className?: string }) {
  return <Pieces pieces={hunksOf(patch)} apart {...rest} />;
}

interface PiecesProps {
  pieces: Piece[];
  /** Between them lie lines that are not known. */
  apart?: boolean;
  filename: string;
  className?: string;
  more?: (n: number) => string;
}

/** Lines that are shown of a difference which is not scrolled. */
const WHOLE_LINES = 60;

function Pieces({ pieces: all, apart = false, filename, className, more }: PiecesProps) {
  const t = useT("common.diff");
  const [opened, setOpened] = useState<ReadonlySet<number>>(new Set());
  const [whole, setWhole] = useState(!more);
  const { added, removed } = countChanges(all.flatMap((piece) => piece.lines));
  const [pieces, hidden] = whole ? [all, 0] : begun(all);
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
          className={cn(
            "py-1 font-mono text-xs leading-5 -outline-offset-2",
            more
              ? "[&_.whitespace-pre]:[overflow-wrap:anywhere] [&_.whitespace-pre]:whitespace-break-spaces"
              : "max-h-96 overflow-auto",
          )}
        >
          <div className={more ? "" : "w-max min-w-full"}>
            {pieces.map((piece, index) =>
              piece.kind === "fold" && !opened.has(index) ? (
                <Fold key={index} piece={piece} onOpen={() => setOpened(new Set(opened).add(index))} />
              ) : (
                <Rows key={index} lines={piece.lines} apart={apart && index > 0} />
              ),
            )}
          </div>
          {more && hidden > 0 && (
            <Button variant="outline" size="xs" className="mx-3 my-1" onClick={() => setWhole(true)}>
              {more(hidden)}
            </Button>
          )}
        </div>
      )}
    </figure>
  );
}

/** The first lines, and how many are left out; what did not change is folded anyway. */
function begun(pieces: Piece[]): [Piece[], number] {
  const shown: Piece[] = [];
  let left = WHOLE_LINES;
  for (const piece of pieces) {
    if (piece.kind !== "fold") {
      const lines = piece.lines.slice(0, left);
      left -= lines.length;
      if (lines.length) shown.push({ ...piece, lines });
    } else if (left > 0) shown.push(piece);
  }
  const count = (of: Piece[]) => of.reduce((sum, { lines }) => sum + lines.length, 0);
  return [shown, count(pieces) - count(shown)];
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
