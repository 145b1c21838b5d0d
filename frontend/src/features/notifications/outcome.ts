import type { Interrupt, Turn } from "@/features/chat";

export type Outcome = "done" | "waiting" | "failed";

const BODY = 200;

/** Outcome of the last turn; null while it runs or if the person stopped it. */
export function outcomeOf(turn: Turn | undefined, interrupts: readonly Interrupt[]): Outcome | null {
  if (!turn) return null;
  if (interrupts.length || (turn.clarification && turn.clarification.answer === null)) return "waiting";
  if (turn.state === "error") return "failed";
  return turn.state === "done" ? "done" : null;
}

/** Text of a notice: the beginning of the answer, or the error. Empty if there is neither. */
export function bodyOf(turn: Turn, outcome: Outcome): string {
  const text = {
    done: turn.answer?.text,
    waiting: turn.clarification?.question,
    failed: turn.error?.message,
  }[outcome];
  const plain = (text ?? "")
    .replace(/[#*_`>]+/g, "")
    .replace(/\s+/g, " ")
    .trim();
  const points = Array.from(plain);
  return points.length > BODY ? `${points.slice(0, BODY - 1).join("")}…` : plain;
}
