/** Summaries that stand for messages in what the model reads. Pure. */
import type { Message } from "./message";

export interface SummaryMark {
  /** Of the last message that it stands for. */
  upto: string;
  text: string;
  /** Tokens of a request without and with it. */
  before: number;
  after: number;
  madeAt: string | null;
  runId: string | null;
  /** Ids of messages up to there that the model still reads. */
  pinned: readonly string[];
}

/** As the gateway sends it. */
export interface WireSummary {
  upto: string;
  text: string;
  before: number;
  after: number;
  made_at?: string;
  run_id?: string;
  pinned?: string[];
}

/** Without those that only shorten old results. What is replayed is known already. */
export function withSummaries(marks: readonly SummaryMark[], summaries: readonly WireSummary[] = []) {
  const known = new Set(marks.map(({ upto, text }) => upto + text));
  const added = summaries.filter(({ upto, text }) => text && !known.has(upto + text));
  return added.length ? [...marks, ...added.map(markOf)] : marks;
}

const markOf = ({ upto, text, before, after, made_at, run_id, pinned }: WireSummary): SummaryMark => ({
  upto,
  text,
  before,
  after,
  madeAt: made_at ?? null,
  runId: run_id ?? null,
  pinned: pinned ?? [],
});

/** Without those that were made in runs of messages that are gone. */
export function without(marks: readonly SummaryMark[], gone: readonly Message[]) {
  const runs = new Set(gone.map(({ runId }) => runId));
  return marks.filter(({ runId }) => !runId || !runs.has(runId));
}

/** Those that end at one of the messages; of several at one place the newest. */
export const marksIn = (messages: readonly Message[], marks: readonly SummaryMark[]): SummaryMark[] =>
  marks.length ? messages.flatMap(({ id }) => marks.findLast(({ upto }) => upto === id) ?? []) : [];

/** Input tokens of the newest call of the model, or what a summary has made of them since. */
export function contextOf(messages: readonly Message[], marks: readonly SummaryMark[]): number | null {
  const counted = messages.findLastIndex(({ usage }) => usage);
  const newest = marks.at(-1);
  const end = newest ? messages.findLastIndex(({ id }) => id === newest.upto) : -1;
  return newest && end >= counted ? newest.after : (messages[counted]?.usage?.input ?? null);
}
