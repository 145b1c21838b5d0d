"use client";
import { useVirtualizer } from "@tanstack/react-virtual";
import { ArrowDown, ArrowUp, Table2 } from "lucide-react";
import { useMemo, useRef, useState } from "react";
import { useLocale, useT } from "@/i18n";
import { cn } from "@/lib/cn";
import { EmptyState } from "@/ui/empty-state";
import { columnTypes, hasHeader, parseTable, sorted, type ColumnType, type Sorting } from "../csv";
import { directionOf } from "@/lib/direction";
import { nameOf } from "@/lib/files";
import { TextFrame } from "./text-frame";
import type { ViewerProps } from "./types";

const ROW = 33;
const MAX_COLUMNS = 200;
/** Pixels of a letter, in the widest of the fonts that a system may have. */
const LETTER = 8.5;
/** Letters at the end of a name that stay when it is cut: those of a series differ there. */
const END = 8;

export default function TableViewer({ file }: ViewerProps) {
  const name = nameOf(file.path);
  return (
    <TextFrame file={file}>
      {(text, isPartial) => <Lines name={name} text={text} isPartial={isPartial} />}
    </TextFrame>
  );
}

interface Column {
  name: string;
  type: ColumnType;
  /** Pixels. */
  width: number;
}

function Lines({ name, text, isPartial }: { name: string; text: string; isPartial: boolean }) {
  const rows = useMemo(() => {
    const delimiter = /\.tsv$/i.test(name) ? "\t" : undefined;
    return parseTable(text, { delimiter, partial: isPartial }).rows;
  }, [name, text, isPartial]);
  return <Grid name={name} rows={rows} isPartial={isPartial} />;
}

interface GridProps {
  name: string;
  rows: string[][];
  /** There are more of them than these. */
  isPartial?: boolean;
  /** Number of rows, header included, if it is known. */
  all?: number;
  /** Labels of rows and columns as formulas use them, if they have any. */
  places?: { numbers: number[]; letters: string[] };
}

export function Grid({ name, rows: given, isPartial = false, all, places }: GridProps) {
  "use no memo"; // the virtualizer changes under the compiler's eyes
  const t = useT("viewers.table");
  const [locale] = useLocale();
  const [sorting, setSorting] = useState<Sorting | null>(null);
  const scroller = useRef<HTMLDivElement>(null);
  const { named, columns, body } = useMemo(
    () => tableOf(given, (n) => places?.letters[n - 1] ?? t("column", { n })),
    [given, places, t],
  );
  const rows = useMemo(
    () => (sorting ? sorted(body, sorting, columns[sorting.column]?.type ?? "text", locale) : body),
    [body, columns, sorting, locale],
  );
  // eslint-disable-next-line react-hooks/incompatible-library
  const virtualizer = useVirtualizer({
    count: rows.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => ROW,
    overscan: 12,
  });
  const numbers = useMemo(
    () => places && new Map(given.map((row, index) => [row, places.numbers[index]])),
    [given, places],
  );
  const direction = useMemo(() => directionOf(given.slice(0, 100).flat().join(" ")) ?? undefined, [given]);
  if (columns.length === 0) return <EmptyState icon={<Table2 />} title={t("none")} />;
  const heads = given.length - rows.length;
  const count =
    all && all > given.length
      ? t("firstOf", { n: rows.length, all: all - heads })
      : t(isPartial ? "first" : "rows", { n: rows.length });
  const digits = String(places?.numbers.at(-1) ?? rows.length).length;
  const template = `${digits * 8 + 24}px ${columns.map((column) => `minmax(${column.width}px, auto)`).join(" ")}`;
  const letters = named ? places?.letters.slice(0, columns.length) : undefined; // without a row of names they are the head
  const above = letters ? 2 : 1;
  const total = digits * 8 + 24 + columns.reduce((sum, column) => sum + column.width, 0);
  return (
    <div className="absolute inset-0 flex flex-col">
      <div ref={scroller} tabIndex={0} className="min-h-0 flex-1 overflow-auto -outline-offset-2">
        <div
          role="table"
          dir={direction}
          aria-label={t("label", { name })}
          aria-rowcount={rows.length + above}
          aria-colcount={columns.length + 1}
          className="text-[13px] tabular-nums"
          style={{ minWidth: total }}
        >
          <div role="rowgroup" className="sticky top-0 z-10 bg-muted">
            {letters && (
              <div
                role="row"
                aria-rowindex={1}
                className="grid border-b text-center text-[11px] leading-5 text-muted-foreground"
                style={{ gridTemplateColumns: template }}
              >
                <span role="cell" className="sticky start-0 bg-muted" />
                {letters.map((letter) => (
                  <span key={letter} role="columnheader">
                    {letter}
                  </span>
                ))}
              </div>
            )}
            <div
              role="row"
              aria-rowindex={above}
              className="grid border-b"
              style={{ gridTemplateColumns: template }}
            >
              <span
                role="columnheader"
                className="sticky start-0 flex items-center justify-end bg-muted pe-2 text-xs text-muted-foreground"
              >
                <span className="sr-only">{t("row")}</span>
                {letters && places?.numbers[0]}
              </span>
              {columns.map((column, index) => (
                <Head
                  key={index}
                  column={column}
                  direction={
                    sorting?.column === index ? (sorting.descending ? "descending" : "ascending") : "none"
                  }
                  onSort={() => setSorting(nextSorting(sorting, index))}
                />
              ))}
            </div>
          </div>
          <div role="rowgroup" className="relative" style={{ height: virtualizer.getTotalSize() }}>
            {virtualizer.getVirtualItems().map((item) => (
              <div
                key={item.key}
                role="row"
                aria-rowindex={item.index + 1 + above}
                className="group absolute inset-x-0 top-0 grid items-center border-b border-border/60 hover:bg-muted/50"
                style={{
                  gridTemplateColumns: template,
                  height: ROW,
                  transform: `translateY(${item.start}px)`,
                }}
              >
                <span
                  role="rowheader"
                  className="sticky start-0 flex h-full items-center justify-end bg-background pe-2 text-xs text-muted-foreground group-hover:bg-muted"
                >
                  {numbers?.get(rows[item.index]!) ?? item.index + 1}
                </span>
                {columns.map((column, index) => {
                  const value = rows[item.index]?.[index] ?? "";
                  return (
                    <span
                      key={index}
                      role="cell"
                      title={value.length > 24 ? value : undefined}
                      className={cn("truncate px-3", column.type === "number" && "text-end")}
                    >
                      {value}
                    </span>
                  );
                })}
              </div>
            ))}
          </div>
        </div>
      </div>
      <footer className="flex h-8 shrink-0 items-center border-t px-4 text-xs text-muted-foreground tabular-nums">
        {count} · {t("columns", { n: columns.length })}
      </footer>
    </div>
  );
}

interface HeadProps {
  column: Column;
  direction: "ascending" | "descending" | "none";
  onSort: () => void;
}

function Head({ column, direction, onSort }: HeadProps) {
  const t = useT("viewers.table");
  const Arrow = direction === "descending" ? ArrowDown : ArrowUp;
  return (
    <span role="columnheader" aria-sort={direction} className="min-w-0">
      <button
        type="button"
        title={column.name}
        className={cn(
          "group/head flex h-9 w-full items-center gap-1 px-3 text-xs font-semibold -outline-offset-2 hover:bg-accent",
          column.type === "number" && "flex-row-reverse",
        )}
        onClick={onSort}
      >
        <span className="sr-only">{t("sortBy", { name: column.name })}</span>
        <span aria-hidden dir="auto" className="flex min-w-0 whitespace-pre">
          <span className="truncate">{column.name.slice(0, -END)}</span>
          <span className={column.name.length > END ? "shrink-0" : "truncate"}>
            {column.name.slice(-END)}
          </span>
        </span>
        <Arrow
          aria-hidden
          className={cn(
            "size-3 shrink-0 text-muted-foreground",
            direction === "none" && "opacity-0 group-hover/head:opacity-50",
          )}
        />
      </button>
    </span>
  );
}

/** Up, down, and as it was. */
function nextSorting(sorting: Sorting | null, column: number): Sorting | null {
  if (sorting?.column !== column) return { column, descending: false };
  return sorting.descending ? null : { column, descending: true };
}

function tableOf(
  rows: string[][],
  unnamed: (n: number) => string,
): { named: boolean; columns: Column[]; body: string[][] } {
  const named = hasHeader(rows);
  const body = named ? rows.slice(1) : rows;
  const width = Math.min(MAX_COLUMNS, Math.max(0, ...rows.slice(0, 1000).map((row) => row.length)));
  const types = columnTypes(body, width);
  const columns = types.map((type, index) => {
    const name = (named && rows[0]?.[index]) || unnamed(index + 1);
    const longest = body
      .slice(0, 200)
      .reduce((most, row) => Math.max(most, widthOf(row[index] ?? "")), widthOf(name) + 2);
    return { name, type, width: Math.round(Math.min(320, Math.max(64, longest * LETTER + 28))) };
  });
  return { named, columns, body };
}

/** In Latin letters; Chinese ones are twice as wide. */
const widthOf = (text: string) =>
  [...text.slice(0, 60)].reduce((sum, char) => sum + (char > "\u2E7F" ? 2 : 1), 0);
