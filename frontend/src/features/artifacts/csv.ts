/** Comma-separated values as programs really write them (RFC 4180 and its relatives). */

export interface Table {
  rows: string[][];
  delimiter: string;
}

const DELIMITERS = [",", ";", "\t", "|"];

/**
 * `delimiter` is found out when it is not given. Of a `partial` text the last row is left out, since it may go on.
 * A quote counts only at the beginning of a field; one that is never closed ends with the text.
 */
export function parseTable(source: string, options: { delimiter?: string; partial?: boolean } = {}): Table {
  const text = source.startsWith("\uFEFF") ? source.slice(1) : source;
  const named = /^sep=(.)\r?\n/i.exec(text); // Excel's first line
  const delimiter = options.delimiter ?? named?.[1] ?? guessDelimiter(text);
  const rows: string[][] = [];
  let row: string[] = [];
  let at = named ? named[0].length : 0;
  let ended = true; // the row before is complete
  while (at < text.length) {
    ended = false;
    const [field, next] = text[at] === '"' ? quoted(text, at, delimiter) : plain(text, at, delimiter);
    row.push(field);
    at = next;
    if (text[at] === delimiter) {
      at += 1;
      if (at === text.length) row.push("");
      continue;
    }
    if (at < text.length) {
      at += text[at] === "\r" && text[at + 1] === "\n" ? 2 : 1;
      ended = true;
    }
    rows.push(row);
    row = [];
  }
  if (row.length) rows.push(row);
  if (options.partial && !ended) rows.pop();
  return { rows: rows.filter((one) => one.length > 1 || one[0] !== ""), delimiter };
}

function plain(text: string, from: number, delimiter: string): [string, number] {
  let at = from;
  for (; at < text.length; at += 1) {
    const char = text[at];
    if (char === delimiter || char === "\n" || char === "\r") break;
  }
  return [text.slice(from, at), at];
}

function quoted(text: string, from: number, delimiter: string): [string, number] {
  let value = "";
  let at = from + 1;
  for (;;) {
    const end = text.indexOf('"', at);
    if (end < 0) return [value + text.slice(at), text.length];
    value += text.slice(at, end);
    if (text[end + 1] !== '"') {
      const [rest, next] = plain(text, end + 1, delimiter); // what wrongly follows the closing quote is kept
      return [value + rest, next];
    }
    value += '"';
    at = end + 2;
  }
}

/** The one that splits the first lines into the most columns, as evenly as can be. */
function guessDelimiter(text: string): string {
  const sample = text.slice(0, 64 * 1024);
  let best = ",";
  let most = 0;
  for (const delimiter of DELIMITERS) {
    const { rows } = parseTable(sample, { delimiter, partial: sample.length < text.length });
    const widths = rows.slice(0, 50).map((row) => row.length);
    const common = mostFrequent(widths);
    const score =
      common > 1 ? (widths.filter((width) => width === common).length / widths.length) * 100 + common : 0;
    if (score > most) [best, most] = [delimiter, score];
  }
  return best;
}

function mostFrequent(numbers: number[]): number {
  const counts = new Map<number, number>();
  for (const one of numbers) counts.set(one, (counts.get(one) ?? 0) + 1);
  return [...counts].sort((a, b) => b[1] - a[1])[0]?.[0] ?? 0;
}

export type ColumnType = "number" | "date" | "text";

const NUMBER = /^[-+−]?[$€£¥]?\s?(\d{1,3}([,' ]\d{3})+|\d+|(?=\.\d))(\.\d+)?(e[-+]?\d+)?\s?[%€]?$/i;
const DATE = /^\d{4}-\d{1,2}(-\d{1,2}([T ]\d{1,2}:\d{2}(:\d{2}(\.\d+)?)?(Z|[-+]\d{2}:?\d{2})?)?)?$/;

const isNumber = (text: string) => NUMBER.test(text.trim());

export function numberOf(text: string): number {
  const plainText = text.replace("−", "-").replace(/[$€£¥%,'\s]/g, "");
  return plainText === "" ? NaN : Number(plainText);
}

/** Judged by what is not empty among the first rows. */
export function columnTypes(rows: string[][], width: number): ColumnType[] {
  return Array.from({ length: width }, (_, column) => {
    const values = rows
      .slice(0, 500)
      .map((row) => row[column]?.trim() ?? "")
      .filter(Boolean);
    if (values.length === 0) return "text";
    if (values.every((value) => NUMBER.test(value))) return "number";
    return values.every((value) => DATE.test(value)) ? "date" : "text";
  });
}

/** True if the first row names the columns: every column has a name, and no name is a number. */
export function hasHeader(rows: string[][]): boolean {
  const [first, ...rest] = rows;
  if (!first || rest.length === 0) return false;
  return first.every((cell) => cell.trim() !== "" && !isNumber(cell)) && new Set(first).size === first.length;
}

export interface Sorting {
  column: number;
  descending: boolean;
}

/** A sorted copy; what is empty comes last in either direction. */
export function sorted(
  rows: string[][],
  { column, descending }: Sorting,
  type: ColumnType,
  locale?: string,
): string[][] {
  const collator = new Intl.Collator(locale, { numeric: true, sensitivity: "base" });
  const direction = descending ? -1 : 1;
  const value = (row: string[]) => row[column]?.trim() ?? "";
  return [...rows].sort((a, b) => {
    const [left, right] = [value(a), value(b)];
    if (!left || !right) return left ? -1 : right ? 1 : 0;
    return direction * (type === "number" ? numberOf(left) - numberOf(right) : collator.compare(left, right));
  });
}
