import { expect, test } from "vitest";
import { splitRecalled } from "./memory-mark";

test("what stood in the prompt is read as summaries and facts, without headings and marks", () => {
  const text = [
    "User Context:",
    "- Work: Builds ships.",
    "Facts:",
    "- [preference | 0.95] Tea, [no] coffee | ever.",
    "- [context | 0.50] Lives in Riga. (unverified, from web_fetch)",
  ].join("\n");
  expect(splitRecalled(text)).toEqual([
    ["Work: Builds ships."],
    ["Tea, [no] coffee | ever.", "Lives in Riga. (unverified, from web_fetch)"],
  ]);
  expect(splitRecalled("History:\n- Recent: Ran.")).toEqual([["Recent: Ran."], []]);
});
