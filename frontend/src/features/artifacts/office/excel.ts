import { child, children, OfficeError, reference, type OfficePackage } from "./package";

export interface Sheet {
  name: string;
  rows: string[][];
  /** Rows that hold something, also those that are left out. */
  total: number;
}

export const MAX_ROWS = 5000;
const MAX_COLUMNS = 200;

/**
 * The sheets that can be seen, as the texts of their cells. Formulas are never computed: `uncalculated` words one whose
 * value the file does not hold.
 */
export async function readSheets(
  office: OfficePackage,
  uncalculated: (formula: string) => string,
): Promise<Sheet[]> {
  const book = await office.xml("xl/workbook.xml");
  if (!book) throw new OfficeError("damaged");
  const relations = await office.relations("xl/workbook.xml");
  const strings = children(await office.xml("xl/sharedStrings.xml"), "si").map(textOf);
  const formats = formatsOf(await office.xml("xl/styles.xml"));
  const from1904 = /^(1|true)$/.test(child(book, "workbookPr")?.getAttribute("date1904") ?? "");
  const shown = children(child(book, "sheets"), "sheet").filter(
    (sheet) => !/hidden/i.test(sheet.getAttribute("state") ?? ""),
  );
  const sheets: Sheet[] = [];
  for (const sheet of shown) {
    const root = await office.xml(relations.get(reference(sheet))?.target ?? "");
    const rows = children(child(root, "sheetData"), "row");
    const show = (cell: Element) =>
      isUncalculated(cell)
        ? uncalculated(child(cell, "f")?.textContent ?? "")
        : valueOf(cell, strings, formats, from1904);
    sheets.push({
      name: sheet.getAttribute("name") ?? "",
      rows: gridOf(rows.slice(0, MAX_ROWS), show),
      total: rows.length,
    });
  }
  return sheets;
}

function gridOf(rows: Element[], show: (cell: Element) => string): string[][] {
  const grid = rows.map((row) => {
    const texts: string[] = [];
    let next = 0;
    for (const cell of children(row, "c")) {
      const column = columnOf(cell.getAttribute("r")) ?? next;
      if (column < MAX_COLUMNS) texts[column] = show(cell);
      next = column + 1;
    }
    return Array.from(texts, (text) => text ?? "");
  });
  const first = Math.min(...grid.map((row) => row.findIndex(Boolean)).filter((index) => index >= 0));
  return Number.isFinite(first) ? grid.map((row) => row.slice(first)).filter((row) => row.some(Boolean)) : [];
}

/** `C7` is column 2. */
function columnOf(place: string | null): number | null {
  const letters = /^[A-Z]{1,3}/.exec(place ?? "")?.[0];
  return letters ? [...letters].reduce((sum, letter) => sum * 26 + letter.charCodeAt(0) - 64, 0) - 1 : null;
}

type Format = "date" | "time" | "moment" | "duration" | "percent" | { digits: number } | null;

/** Written by a program that computes nothing. A text that is empty is a value, too. */
const isUncalculated = (cell: Element) =>
  child(cell, "f") !== undefined &&
  !child(cell, "v")?.textContent &&
  !(cell.getAttribute("t") === "str" && child(cell, "v"));

function valueOf(cell: Element, strings: string[], formats: Format[], from1904: boolean): string {
  const type = cell.getAttribute("t") ?? "n";
  const value = child(cell, "v")?.textContent ?? "";
  if (type === "inlineStr") return textOf(child(cell, "is"));
  if (value === "") return "";
  if (type === "s") return strings[Number(value)] ?? "";
  if (type === "b") return value === "1" ? "TRUE" : "FALSE";
  const number = Number(value);
  if (type !== "n" || !Number.isFinite(number)) return value;
  const format = formats[Number(cell.getAttribute("s") ?? 0)] ?? null;
  if (format === "percent") return `${round(number * 100, 10)}%`;
  if (format === "duration") return durationOf(number);
  if (typeof format === "string") return momentOf(number + (from1904 ? 1462 : 0), format);
  // Numbers of articles, accounts and cards: a digit that changes makes another one.
  const whole = /^-?\d+$/.test(value) ? value : String(round(number, 15));
  return format && number >= 0 && /^\d+$/.test(whole) ? whole.padStart(format.digits, "0") : whole;
}

/** As many significant digits as Excel keeps, and no traces of binary fractions. */
const round = (number: number, digits: number) => Number(number.toPrecision(digits));

function durationOf(days: number): string {
  const seconds = Math.round(Math.abs(days) * 86_400);
  const two = (part: number) => String(part % 60).padStart(2, "0");
  const text = `${Math.floor(seconds / 3600)}:${two(Math.floor(seconds / 60))}:${two(seconds)}`;
  return days < 0 ? `-${text}` : text;
}

function momentOf(days: number, format: "date" | "time" | "moment"): string {
  const moment = new Date(Math.round((days - 25_569) * 86_400) * 1000);
  if (Number.isNaN(moment.getTime())) return String(days);
  const iso = moment.toISOString();
  const [date, time] = [iso.slice(0, 10), iso.slice(11, 16)];
  return format === "date" ? date : format === "time" ? time : `${date} ${time}`;
}

/** What the styles of cells mean for numbers. */
function formatsOf(styles: Element | null): Format[] {
  const codes = new Map(
    children(child(styles, "numFmts"), "numFmt").map((one) => [
      Number(one.getAttribute("numFmtId")),
      one.getAttribute("formatCode") ?? "",
    ]),
  );
  return children(child(styles, "cellXfs"), "xf").map((style) => {
    const id = Number(style.getAttribute("numFmtId"));
    const code = (codes.get(id) ?? BUILT_IN[id] ?? "").slice(0, 255).replace(/"[^"]*"|\\./g, "");
    return /\[[hms]+\]/i.test(code) ? "duration" : formatOf(code.replace(/\[[^\]]*\]/g, ""));
  });
}

const BUILT_IN: Record<number, string> = {
  9: "0%",
  10: "0.00%",
  14: "d/m/y",
  15: "d-m-y",
  16: "d-m",
  17: "m-y",
  18: "h:m",
  19: "h:m:s",
  20: "h:m",
  21: "h:m:s",
  22: "d/m/y h:m",
  45: "m:s",
  46: "[h]:m:s",
  47: "m:s",
};

function formatOf(code: string): Format {
  if (code.includes("%")) return "percent";
  const [date, time] = [/[yd]/i.test(code), /[hs]/i.test(code)];
  if (/^0+$/.test(code)) return { digits: code.length };
  return date && time ? "moment" : date ? "date" : time ? "time" : null;
}

/** Of a string with or without formatted parts; how it is pronounced stands beside it in Japanese. */
const textOf = (of: Element | undefined): string =>
  children(of)
    .map((part) =>
      part.localName === "t" ? (part.textContent ?? "") : part.localName === "r" ? textOf(part) : "",
    )
    .join("");
