"use client";
import { ChevronRight } from "lucide-react";
import type { CSSProperties } from "react";
import { useT } from "@/i18n";
import { cn } from "@/lib/cn";
import type { Axis } from "./axis";
import { Bars } from "./bars";
import type { Described } from "./describe";
import type { Row } from "./spans";

/** Name, axis, duration. */
export const COLUMNS = "grid grid-cols-[minmax(8.5rem,2fr)_minmax(0,3fr)_3.75rem] gap-x-3 px-3";

interface SpanRowProps {
  id: string;
  row: Row;
  axis: Axis;
  elapsed: number;
  described: Described;
  compact: boolean;
  active: boolean;
  style: CSSProperties;
  onToggle: () => void;
  onPick: () => void;
}

/** One span: a line of the tree. */
export function SpanRow(props: SpanRowProps) {
  const { id, row, axis, elapsed, described, compact, active, style, onToggle, onPick } = props;
  const t = useT("runs");
  const { span, level, open, inside } = row;
  const { icon: Icon, name, detail, facts, lasted } = described;
  const more = open === false ? t("steps", { n: inside.length }) : "";
  return (
    <div
      id={id}
      role="treeitem"
      aria-level={level}
      aria-posinset={row.position}
      aria-setsize={row.siblings}
      aria-expanded={open ?? undefined}
      aria-selected={active}
      className={cn(
        "absolute inset-x-0 top-0 cursor-default text-[13px] hover:bg-accent/60",
        active && "bg-accent group-focus-visible/tree:inset-ring-2 group-focus-visible/tree:inset-ring-ring",
        compact ? "flex items-center gap-2 px-3" : cn(COLUMNS, "items-center"),
      )}
      style={style}
      onClick={onPick}
    >
      <span
        className="flex min-w-0 flex-1 items-center gap-1.5"
        style={{ paddingLeft: `${(level - 1) * 0.875}rem` }}
      >
        <span
          className={cn("-m-1 shrink-0 p-1 text-muted-foreground", open === null && "invisible")}
          onClick={(event) => {
            event.stopPropagation();
            onToggle();
          }}
        >
          <ChevronRight aria-hidden className={cn("size-3.5 transition-transform", open && "rotate-90")} />
        </span>
        <Icon
          aria-hidden
          className={cn(
            "size-3.5 shrink-0",
            span.status === "error" ? "text-destructive" : "text-muted-foreground",
          )}
        />
        <span className={cn("min-w-0", compact ? "flex flex-1 flex-col" : "truncate")}>
          <span className={cn(compact && "truncate")}>{name}</span>{" "}
          {compact ? (
            <span className="truncate text-xs text-muted-foreground">
              {[detail, ...facts, more].filter(Boolean).join(" · ")}
            </span>
          ) : (
            detail && <span className="ml-1 text-xs text-muted-foreground">{detail}</span>
          )}
        </span>
      </span>
      {!compact && (
        <span className="h-full" style={{ background: gridOf(axis) }}>
          <Bars row={row} axis={axis} elapsed={elapsed} />
        </span>
      )}{" "}
      <span className="shrink-0 text-right text-xs text-muted-foreground tabular-nums">{lasted}</span>{" "}
      {!compact && <span className="sr-only">{[...facts, more].filter(Boolean).join(", ")}</span>}
    </div>
  );
}

/** Lines at the ticks. */
const gridOf = ({ ticks }: Axis) =>
  ticks
    .map(({ at }) => `linear-gradient(var(--border), var(--border)) ${at * 100}% 0 / 1px 100% no-repeat`)
    .join(", ");
