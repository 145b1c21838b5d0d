"use client";
import { useVirtualizer } from "@tanstack/react-virtual";
import { useEffect, useId, useMemo, useRef, useState, type KeyboardEvent } from "react";
import { useLocale, useT } from "@/i18n";
import type { Timeline } from "@/lib/api";
import { formatBrief } from "@/lib/format";
import { axisOf, type Axis } from "./axis";
import { useDescribe } from "./describe";
import { SpanDetails } from "./span-details";
import { COLUMNS, SpanRow } from "./span-row";
import { rowsOf, treeOf, type Row } from "./spans";

const HEIGHT = { axis: 32, list: 56 };

interface SpanTreeProps {
  timeline: Timeline;
  /** Without the axis, each row with what is known of it. */
  compact: boolean;
  onShow: (row: Row) => void;
}

/** All that a run did: a tree for the keyboard and for screen readers, drawn along a time axis. */
export function SpanTree({ timeline, compact, onShow }: SpanTreeProps) {
  const t = useT("runs");
  const { spans, elapsed_ms: elapsed } = timeline;
  const [opened, setOpened] = useState<ReadonlySet<number>>(new Set());
  const [chosen, choose] = useState<number | null>(null);
  const tree = useMemo(() => treeOf(spans), [spans]);
  const rows = useMemo(() => rowsOf(tree, opened), [tree, opened]);
  const axis = useMemo(() => axisOf(spans, elapsed), [spans, elapsed]);
  const describe = useDescribe(elapsed);
  const at = rows.findIndex(({ span }) => span.id === chosen);
  const box = useRef<HTMLDivElement>(null);
  // eslint-disable-next-line react-hooks/incompatible-library -- rows are cheap
  const virtualizer = useVirtualizer({
    count: rows.length,
    getScrollElement: () => box.current,
    estimateSize: () => HEIGHT[compact ? "list" : "axis"],
    getItemKey: (i) => rows[i]!.span.id,
    overscan: 6,
  });
  useEffect(() => virtualizer.measure(), [virtualizer, compact]);
  // Who looks at the end of a run that goes on sees what comes.
  const atEnd = useRef(false);
  useEffect(() => {
    if (atEnd.current) virtualizer.scrollToEnd();
  }, [virtualizer, rows.length]);
  const id = useId();
  const idOf = (row: Row) => `${id}-${row.span.id}`;
  const items = virtualizer.getVirtualItems();
  const drawn = at >= 0 && items.some(({ index }) => index === at);

  const toggle = ({ span, open }: Row) => {
    if (open === null) return;
    setOpened(
      (before) => new Set(open ? [...before].filter((one) => one !== span.id) : [...before, span.id]),
    );
  };
  const go = (to: number) => {
    const next = Math.max(0, Math.min(rows.length - 1, to));
    if (!rows[next]) return;
    choose(rows[next].span.id);
    virtualizer.scrollToIndex(next);
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const row = rows[at];
    const above = () => rows.findLastIndex((one, i) => i < at && row && one.level < row.level);
    const moves: Record<string, () => void> = {
      ArrowDown: () => go(at + 1),
      ArrowUp: () => go(at < 0 ? 0 : at - 1),
      Home: () => go(0),
      End: () => go(rows.length - 1),
      PageDown: () => go(at + 10),
      PageUp: () => go(at - 10),
      ArrowRight: () => row && (row.open === false ? toggle(row) : row.open && go(at + 1)),
      ArrowLeft: () => row && (row.open ? toggle(row) : above() >= 0 && go(above())),
      Enter: () => row && onShow(row),
      " ": () => row && toggle(row),
    };
    const move = event.altKey || event.ctrlKey || event.metaKey ? undefined : moves[event.key];
    if (!move) return;
    event.preventDefault();
    move();
  };

  if (!rows.length) return <p className="p-4 text-sm text-muted-foreground">{t("empty")}</p>;
  return (
    <div className="flex min-h-0 flex-1 flex-col">
      {!compact && <Ticks axis={axis} />}
      <div
        ref={box}
        role="tree"
        aria-label={t("tree")}
        aria-activedescendant={drawn ? idOf(rows[at]!) : undefined}
        tabIndex={0}
        className="group/tree min-h-0 flex-1 [scrollbar-gutter:stable] overflow-y-auto overscroll-contain outline-none"
        onKeyDown={onKeyDown}
        onScroll={({ currentTarget: { scrollTop, scrollHeight, clientHeight } }) => {
          atEnd.current = scrollTop > 0 && scrollHeight - scrollTop - clientHeight < HEIGHT.axis;
        }}
        onFocus={() => at < 0 && choose(rows[0]!.span.id)}
      >
        <div role="presentation" className="relative" style={{ height: virtualizer.getTotalSize() }}>
          {items.map(({ index, start, size }) => {
            const row = rows[index]!;
            return (
              <SpanRow
                key={row.span.id}
                id={idOf(row)}
                {...{ row, axis, compact, elapsed }}
                described={describe(row.span)}
                active={index === at}
                style={{ transform: `translateY(${start}px)`, height: size }}
                onToggle={() => toggle(row)}
                onPick={() => {
                  choose(row.span.id);
                  onShow(row);
                }}
              />
            );
          })}
        </div>
      </div>
      {!compact && (
        <SpanDetails
          row={rows[at] ?? null}
          described={rows[at] ? describe(rows[at].span) : null}
          onShow={onShow}
        />
      )}
    </div>
  );
}

function Ticks({ axis }: { axis: Axis }) {
  const [locale] = useLocale();
  return (
    <div
      aria-hidden
      className={`${COLUMNS} h-7 shrink-0 [scrollbar-gutter:stable] overflow-hidden border-b text-xs text-muted-foreground`}
    >
      <span />
      <span className="relative">
        {axis.ticks.map(({ at, milliseconds }) => (
          <span
            key={at}
            className="absolute top-1.5 border-l pl-1 whitespace-nowrap tabular-nums"
            style={{ left: `${at * 100}%` }}
          >
            {formatBrief(milliseconds, locale)}
          </span>
        ))}
      </span>
      <span />
    </div>
  );
}
