import type { components } from "@/lib/api-types";
import { http } from "@/lib/http";

type Schemas = components["schemas"];
export type Report = Schemas["UsageReport"];
export type Figures = Schemas["Figures"];
export type Limit = Schemas["Limit"];
export type By = Report["by"];
/** Owner of the figures: oneself, everyone, or the person with this id. */
export type Whose = "me" | "everyone" | (string & {});

export const RANGES = [7, 30, 90, 365] as const;
export type Range = (typeof RANGES)[number];

const DAY = 86_400_000;
const dayOf = (time: number) => new Date(time).toISOString().slice(0, 10);

export const usage = (by: By, days: Range, whose: Whose, now = Date.now()) =>
  http.get<Report>("/api/usage", {
    query: {
      by,
      since: dayOf(now - (days - 1) * DAY),
      until: dayOf(now),
      ...(whose === "everyone" ? { everyone: true } : whose === "me" ? {} : { person: whose }),
    },
  });
export const limits = async () => (await http.get<Schemas["UsageLimits"]>("/api/usage/limits")).limits;

/** A value for each day of the report, the earliest first; days without use have none in it. */
export function perDay(
  report: Report,
  value: (figures: Figures) => number,
): { day: string; value: number }[] {
  const found = new Map(report.rows.map((row) => [row.key, value(row)]));
  const days: { day: string; value: number }[] = [];
  for (let time = Date.parse(report.since); time <= Date.parse(report.until); time += DAY)
    days.push({ day: dayOf(time), value: found.get(dayOf(time)) ?? 0 });
  return days;
}

/** The currencies of a report, that of the largest sum first. */
export const currenciesOf = ({ total }: Report): string[] =>
  Object.entries(total.cost)
    .sort(([, one], [, other]) => other - one)
    .map(([currency]) => currency);

const COLUMNS = [
  "calls",
  "input_tokens",
  "cached_tokens",
  "output_tokens",
  "total_tokens",
  "unpriced_calls",
  "estimated_calls",
] as const;

/** For spreadsheets: a column for each currency. */
export function csvOf(report: Report, nameOf: (key: string) => string): string {
  const currencies = currenciesOf(report);
  const head = [report.by, ...COLUMNS, ...currencies.map((one) => `cost_${one}`)];
  const rows = report.rows.map((row) => [
    cell(nameOf(row.key)),
    ...COLUMNS.map((column) => row[column]),
    ...currencies.map((one) => row.cost[one] ?? 0),
  ]);
  return [head, ...rows].map((fields) => `${fields.join(",")}\r\n`).join("");
}

/** Quoted where it must be. What a spreadsheet would take for a formula is a text. */
function cell(text: string): string {
  const plain = /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(plain) ? `"${plain.replaceAll('"', '""')}"` : plain;
}
