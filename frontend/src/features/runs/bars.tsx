"use client";
import { cn } from "@/lib/cn";
import type { Span } from "@/lib/api";
import type { Axis } from "./axis";
import type { Row } from "./spans";

const TONES: Record<Span["kind"], string> = {
  queue: "bg-border",
  attempt: "bg-destructive",
  model: "bg-primary",
  tool: "bg-foreground/55",
  agent: "bg-muted-foreground/25",
  command: "bg-foreground/80",
  decision: "bg-warning",
  retry: "bg-destructive/60",
  notice: "bg-warning",
};

interface BarsProps {
  row: Row;
  axis: Axis;
  elapsed: number;
}

/** Time of a span on the axis. A closed row draws its children on its own bar. */
export function Bars({ row, axis, elapsed }: BarsProps) {
  const { span, inside } = row;
  return (
    <span aria-hidden className="relative block h-full">
      {inside.length > 0 ? (
        <Bar from={span.start_ms} to={span.end_ms ?? elapsed} axis={axis} className={cn(lane(span), "h-4")} />
      ) : (
        <SpanBar span={span} axis={axis} elapsed={elapsed} />
      )}
      {inside.map((one) => (
        <SpanBar key={one.id} span={one} axis={axis} elapsed={elapsed} />
      ))}
    </span>
  );
}

const lane = (span: Span) => (span.status === "error" ? "bg-destructive/20" : "bg-foreground/12");

function SpanBar({ span, axis, elapsed }: { span: Span; axis: Axis; elapsed: number }) {
  const end = span.end_ms ?? Math.max(elapsed, span.start_ms);
  const first = span.first_token_ms;
  const tone = span.status === "error" ? "bg-destructive" : TONES[span.kind];
  const busy = span.status === "running" && "motion-safe:animate-pulse";
  if (first == null)
    return <Bar from={span.start_ms} to={end} axis={axis} className={cn(tone, "h-2", busy)} />;
  return (
    <>
      <Bar from={span.start_ms} to={first} axis={axis} className="h-2 rounded-r-none bg-primary/35" />
      <Bar from={first} to={end} axis={axis} className={cn(tone, "h-2 rounded-l-none", busy)} />
    </>
  );
}

function Bar({ from, to, axis, className }: { from: number; to: number; axis: Axis; className: string }) {
  const [left, right] = [axis.at(from) * 100, axis.at(to) * 100];
  return (
    <span
      className={cn("absolute top-1/2 block min-w-0.5 -translate-y-1/2 rounded-[3px]", className)}
      style={{ left: `min(${left}%, 100% - 2px)`, width: `${right - left}%` }}
    />
  );
}
