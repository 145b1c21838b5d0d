/** Positions of a run's moments on its axis. Pure. */
import type { Span } from "@/lib/api";

export interface Axis {
  /** From 0 to 1. */
  at: (milliseconds: number) => number;
  ticks: { at: number; milliseconds: number }[];
}

/** Largest share of the axis for a wait for the person, which may have lasted for days. */
const WAIT_SHARE = 0.12;
const STEPS = [
  10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 15_000, 30_000, 60_000, 120_000, 300_000, 600_000,
  1_800_000,
];
const HOUR = 3_600_000;
const TICKS = 4;

/** Linear, but for waits for the person, which are cut short. */
export function axisOf(spans: readonly Span[], elapsed: number): Axis {
  const waits = waitsIn(spans, elapsed);
  const waited = waits.reduce((sum, { from, to }) => sum + to - from, 0);
  const most = Math.max(1, (elapsed - waited) * WAIT_SHARE);
  const points = [{ real: 0, shown: 0 }];
  const go = (real: number, length: number) => points.push({ real, shown: points.at(-1)!.shown + length });
  for (const { from, to } of waits) {
    go(from, from - points.at(-1)!.real);
    go(to, Math.min(to - from, most));
  }
  go(elapsed, elapsed - points.at(-1)!.real);
  const total = Math.max(1, points.at(-1)!.shown);
  const step = STEPS.find((one) => total / one <= TICKS) ?? Math.ceil(total / TICKS / HOUR) * HOUR;
  const count = Math.ceil(total / step - 0.15);
  return {
    at: (milliseconds) => between(points, "real", "shown", milliseconds) / total,
    ticks: Array.from({ length: Math.max(1, count) }, (_, i) => ({
      at: (i * step) / total,
      milliseconds: between(points, "shown", "real", i * step),
    })),
  };
}

type Point = Record<"real" | "shown", number>;

function between(points: readonly Point[], from: keyof Point, to: keyof Point, value: number): number {
  const i = points.findIndex((point, at) => at > 0 && point[from] >= value);
  if (i < 0) return points.at(-1)![to];
  const [one, next] = [points[i - 1]!, points[i]!];
  const length = next[from] - one[from];
  return length === 0 ? next[to] : one[to] + ((value - one[from]) / length) * (next[to] - one[to]);
}

function waitsIn(spans: readonly Span[], elapsed: number): { from: number; to: number }[] {
  const found: { from: number; to: number }[] = [];
  const decisions = spans.filter(({ kind }) => kind === "decision");
  for (const { start_ms: from, end_ms } of decisions.toSorted(
    (one, other) => one.start_ms - other.start_ms,
  )) {
    const to = Math.min(elapsed, end_ms ?? elapsed);
    const last = found.at(-1);
    if (last && from <= last.to) last.to = Math.max(last.to, to);
    else if (to > from) found.push({ from, to });
  }
  return found;
}
