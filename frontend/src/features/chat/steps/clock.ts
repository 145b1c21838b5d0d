"use client";
import { useEffect, useState } from "react";
import { isActive } from "./steps-summary";
import type { Part } from "../thread/turns";

/** The time, every second, while `running`. */
export function useNow(running: boolean): number {
  const [now, setNow] = useState(() => Date.now());
  useEffect(() => {
    if (!running) return;
    const timer = setInterval(() => setNow(Date.now()), 1000);
    return () => clearInterval(timer);
  }, [running]);
  return now;
}

export interface PartTime {
  start: number;
  end: number | null;
}

/** Start and end of each step, as far as this page saw them: the transcript has no times. */
export function usePartTimes(parts: Part[]): Record<string, PartTime> {
  const [times, setTimes] = useState<Record<string, PartTime>>({});
  const next = timed(times, parts);
  if (next !== times) setTimes(next);
  return next;
}

function timed(times: Record<string, PartTime>, parts: Part[]): Record<string, PartTime> {
  let next = times;
  for (const part of parts) {
    const known = next[part.id];
    const active = isActive(part);
    if (active === (known !== undefined && known.end === null)) continue;
    if (!active && !known) continue;
    const now = Date.now();
    next = {
      ...next,
      [part.id]: active
        ? { start: known?.start ?? now, end: null }
        : { start: known!.start, end: known!.end ?? now },
    };
  }
  return next;
}
