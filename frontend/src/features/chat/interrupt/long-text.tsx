"use client";
import { useState } from "react";
import { useT } from "@/i18n";
import { cn } from "@/lib/cn";
import { markedPieces } from "@/lib/marks";
import { Button } from "@/ui/button";

const LINES = 24;
/** Characters after which a line counts as another one, as it would be broken. */
const WIDTH = 100;
/** So many lines more than {@link LINES} are not worth a button. */
const SLACK = 4;

/** A text that is to be decided about: what cannot be seen is marked, and what is not shown is counted. */
export function LongText({ text, className }: { text: string; className?: string }) {
  const t = useT("decisions");
  const [all, setAll] = useState(false);
  const [shown, hidden] = all ? [text, 0] : cut(text);
  return (
    <div className={cn("px-3 py-2", className)}>
      <pre
        dir="ltr"
        className="font-mono text-[12.5px] leading-[1.6] [overflow-wrap:anywhere] whitespace-break-spaces [tab-size:4]"
      >
        <Marked text={shown} />
      </pre>
      {hidden > 0 && (
        <Button variant="outline" size="xs" className="mt-2" onClick={() => setAll(true)}>
          {t("moreLines", { n: hidden })}
        </Button>
      )}
    </div>
  );
}

/** A text with marks for what cannot be seen. */
export function Marked({ text }: { text: string }) {
  return markedPieces(text).map((piece, i) =>
    piece.mark ? (
      <mark key={i} className="rounded-sm bg-warning-soft px-0.5 font-mono text-[0.9em] text-warning">
        {piece.text}
      </mark>
    ) : (
      piece.text
    ),
  );
}

/** The beginning of a text, and how many lines are left out. */
export function cut(text: string): [string, number] {
  const lines = text.split("\n");
  const rows = lines.map(rowsOf);
  const count = rows.reduce((sum, one) => sum + one, 0);
  if (count <= LINES + SLACK) return [text, 0];
  const shown: string[] = [];
  let left = LINES;
  for (let i = 0; left > 0; i += 1) {
    const line = lines[i]!;
    shown.push(rows[i]! > left ? line.slice(0, left * WIDTH) : line);
    left -= Math.min(rows[i]!, left);
  }
  return [shown.join("\n"), count - LINES];
}

const rowsOf = (line: string) => Math.max(1, Math.ceil(line.length / WIDTH));
