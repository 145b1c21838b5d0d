import { createContext, use, useState } from "react";
import type { Turn } from "../thread/turns";

/** A step that is brought into sight and marked; each wish is an object of its own. */
export interface ShownStep {
  id: string;
  turn: number;
}

export const StepContext = createContext<ShownStep | null>(null);

/** Position of the first of these messages and calls. */
export function stepIn(turns: readonly Turn[], ids: readonly string[]): ShownStep | null {
  for (const id of ids) {
    const turn = turns.findIndex(
      ({ steps, answer }) => answer?.id === id || steps.some((part) => part.id === id),
    );
    if (turn >= 0) return { id, turn };
  }
  return null;
}

/** Calls `open` once for each wish to see one of these steps. */
export function useOpenFor(parts: readonly { id: string }[], open: () => void) {
  const step = use(StepContext);
  const [seen, see] = useState<ShownStep | null>(null);
  if (!step || step === seen || !parts.some(({ id }) => id === step.id)) return;
  see(step);
  open();
}

/** Style of an element that shows a step: the marked one stands out. */
export const STEP =
  "min-w-0 rounded-md outline-none data-marked:bg-primary-soft data-marked:ring-4 data-marked:ring-primary-soft";

/** Props of such an element. */
export function useStepMark(id: string) {
  const marked = use(StepContext)?.id === id;
  return { "data-step": id, "data-marked": marked || undefined };
}
