import type { Fact, Memory } from "./api";

/** Categories that facts learned from chats have, the most telling ones first; others follow by name. */
export const CATEGORIES = ["correction", "preference", "goal", "context", "knowledge", "behavior"] as const;
export type Category = (typeof CATEGORIES)[number];

export const isKnown = (category: string): category is Category =>
  (CATEGORIES as readonly string[]).includes(category);

/** Facts that hold all words of the query, the newest first: those that wait for the person, and the others by category. */
export function grouped(
  facts: readonly Fact[],
  query: string,
): { unconfirmed: Fact[]; groups: [string, Fact[]][] } {
  const words = query.toLowerCase().split(/\s+/).filter(Boolean);
  const found = facts
    .filter((fact) => {
      const text = `${fact.content} ${fact.category}`.toLowerCase();
      return words.every((word) => text.includes(word));
    })
    .toSorted((one, other) => other.createdAt.localeCompare(one.createdAt));
  const groups = new Map<string, Fact[]>();
  for (const fact of found.filter(({ untrusted }) => !untrusted))
    groups.set(fact.category, [...(groups.get(fact.category) ?? []), fact]);
  const rank = (category: string) => (isKnown(category) ? CATEGORIES.indexOf(category) : CATEGORIES.length);
  return {
    unconfirmed: found.filter(({ untrusted }) => untrusted),
    groups: [...groups].sort(([one], [other]) => rank(one) - rank(other) || one.localeCompare(other)),
  };
}

export type Level = "veryHigh" | "high" | "normal";
export const levelOf = (confidence: number): Level =>
  confidence >= 0.85 ? "veryHigh" : confidence >= 0.65 ? "high" : "normal";

/** The thread that a fact was learned in. */
export const threadOf = ({ source }: Fact) => (["manual", "unknown", ""].includes(source) ? null : source);

const SUMMARIES = [
  ["user", "workContext"],
  ["user", "personalContext"],
  ["user", "topOfMind"],
  ["history", "recentMonths"],
  ["history", "earlierContext"],
  ["history", "longTermBackground"],
] as const;

/** Summaries about the person, without empty ones. */
export const summariesOf = (memory: Memory) =>
  SUMMARIES.map(([part, name]) => ({
    name,
    text: (memory[part] as Record<string, { summary: string } | undefined>)[name]?.summary ?? "",
  })).filter(({ text }) => text);
