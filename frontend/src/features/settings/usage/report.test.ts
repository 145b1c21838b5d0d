import { expect, test } from "vitest";
import { csvOf, currenciesOf, perDay, type Figures, type Report } from "./report";

const figures = (key: string, given: Partial<Figures> = {}): Figures => ({
  key,
  calls: 1,
  input_tokens: 10,
  cached_tokens: 0,
  output_tokens: 2,
  total_tokens: 12,
  unpriced_calls: 0,
  estimated_calls: 0,
  cost: {},
  ...given,
});
const report = (given: Partial<Report>): Report => ({
  by: "day",
  since: "2026-02-27",
  until: "2026-03-02",
  rows: [],
  total: figures("total"),
  ...given,
});

test("each day has a value, days without use and the end of a month included", () => {
  const days = perDay(report({ rows: [figures("2026-03-01"), figures("2026-02-27")] }), (row) => row.calls);
  expect(days.map(({ day, value }) => `${day} ${value}`)).toEqual([
    "2026-02-27 1",
    "2026-02-28 0",
    "2026-03-01 1",
    "2026-03-02 0",
  ]);
});

test("the currency of the largest sum comes first", () => {
  expect(currenciesOf(report({ total: figures("total", { cost: { EUR: 1, USD: 2 } }) }))).toEqual([
    "USD",
    "EUR",
  ]);
});

test("a file for spreadsheets has a column for each currency, and runs no formula of a name", () => {
  const rows = [figures('=HYPERLINK("x"),1', { cost: { USD: 0.5 } }), figures("m", { cost: { EUR: 2 } })];
  const total = figures("total", { cost: { USD: 0.5, EUR: 2 } });
  expect(csvOf(report({ by: "model", rows, total }), (key) => key)).toBe(
    "model,calls,input_tokens,cached_tokens,output_tokens,total_tokens,unpriced_calls,estimated_calls,cost_EUR,cost_USD\r\n" +
      `"'=HYPERLINK(""x""),1",1,10,0,2,12,0,0,0,0.5\r\n` +
      "m,1,10,0,2,12,0,0,2,0\r\n",
  );
});
