import { expect, test } from "vitest";
import { formatBrief, formatCost, formatDuration } from "./format";

test("durations are short, and in the language of the page", () => {
  const all = [400, 12_300, 185_000, 7_800_000, 3_600_000];
  expect(all.map((one) => formatDuration(one, "en"))).toEqual(["0.4s", "12s", "3m 5s", "2h 10m", "1h"]);
  expect(all.map((one) => formatDuration(one, "zh"))).toEqual([
    "0.4秒",
    "12秒",
    "3分钟5秒",
    "2小时10分钟",
    "1小时",
  ]);
});

test("what takes less than a second has milliseconds where they count", () => {
  expect([0, 35.4, 999.4, 999.6, 12_300].map((one) => formatBrief(one, "en"))).toEqual([
    "0ms",
    "35ms",
    "999ms",
    "1.0s",
    "12s",
  ]);
});

test("costs have the currency of the prices, and no sum is shown as nothing", () => {
  expect([0, 0.00001, 0.0042, 0.5, 12].map((one) => formatCost(one, "USD", "en"))).toEqual([
    "$0",
    "<$0.0001",
    "$0.0042",
    "$0.500",
    "$12.00",
  ]);
  expect(formatCost(1.5, "CNY", "zh")).toBe("¥1.50");
  expect(formatCost(1.5, null, "en")).toBe("1.50");
});
