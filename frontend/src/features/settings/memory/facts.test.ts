import { expect, test } from "vitest";
import type { Fact } from "./api";
import { grouped } from "./facts";

const fact = (id: string, category: string, more: Partial<Fact> = {}): Fact => ({
  id,
  content: `Fact ${id}.`,
  category,
  confidence: 0.9,
  createdAt: `2026-01-0${id}`,
  source: "t",
  ...more,
});

test("facts that wait for the person stand apart, the others by category, the newest first", () => {
  const facts = [
    fact("1", "goal"),
    fact("2", "preference"),
    fact("3", "goal"),
    fact("4", "goal", { untrusted: "letter.pdf" }),
    fact("5", "odd", { untrusted: "page" }),
  ];
  const { unconfirmed, groups } = grouped(facts, "");
  expect(unconfirmed.map(({ id }) => id)).toEqual(["5", "4"]);
  expect(groups.map(([category, some]) => [category, some.map(({ id }) => id)])).toEqual([
    ["preference", ["2"]],
    ["goal", ["3", "1"]],
  ]);
  expect(grouped(facts, "fact 4").unconfirmed.map(({ id }) => id)).toEqual(["4"]);
});
