"use client";
import { useEffect, useEffectEvent, type RefObject } from "react";
import type { ShownStep } from "./shown-step";

/** Frames for which nothing has moved before one looks at where the step is. */
const STILL = 3;
const PATIENCE = 120;

interface ShowStepProps {
  step: ShownStep;
  box: RefObject<HTMLDivElement | null>;
  /** Brings a turn into the page. */
  show: (turn: number) => void;
}

/** Brings a step into sight, opens it, and puts the focus on it. */
export default function ShowStep({ step, box, show }: ShowStepProps) {
  const bring = useEffectEvent(show);
  useEffect(() => {
    let frame = 0;
    let still = 0;
    let last = -1;
    const settle = (left: number) => {
      const element = box.current?.querySelector<HTMLElement>(`[data-step="${CSS.escape(step.id)}"]`);
      const top = element?.getBoundingClientRect().top ?? -1;
      still = element && top === last ? still + 1 : 0;
      last = top;
      if (element && (still >= STILL || left === 0)) reveal(element);
      else if (left > 0) frame = requestAnimationFrame(() => settle(left - 1));
    };
    bring(step.turn);
    settle(PATIENCE);
    return () => cancelAnimationFrame(frame);
  }, [step, box]);
  return null;
}

function reveal(element: HTMLElement) {
  const button = element.querySelector<HTMLElement>("[aria-expanded]");
  if ("opens" in element.dataset && button?.ariaExpanded === "false") button.click();
  element.scrollIntoView({ block: "center" });
  if (!button) element.tabIndex = -1;
  (button ?? element).focus({ preventScroll: true });
}
