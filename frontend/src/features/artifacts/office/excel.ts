import { child, children, OfficeError, reference, type OfficePackage } from "./package";

export interface Sheet {
  name: string;
  /** The used part of a sheet, without empty rows and without the empty columns at its left. */
  rows: string[][];
  /** The sheet's own number of each row. */
  numbers: number[];
  /** The sheet's own letters of each column. */
  letters: string[];
  /** Rows that hold something, also those that are left out. */
  total: number;
  comments: Comment[];
}

export interface Comment {
  /** Such as `B2`. */
  place: string;
  author: string;
  text: string;
}

export const MAX_ROWS = 5000;
const MAX_COLUMNS = 200;
const MAX_COMMENTS = 500;

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
  const people = [...relations.values()].find(({ target }) => /\/persons\//.test(target))?.target;
  const persons = children(await office.xml(people ?? ""), "person");
  const sheets: Sheet[] = [];
  for (const sheet of shown) {
    const part = relations.get(reference(sheet))?.target ?? "";
    const root = await office.xml(part);
    const rows = children(child(root, "sheetData"), "row");
    const show = (cell: Element) =>
      isUncalculated(cell)
        ? uncalculated(child(cell, "f")?.textContent ?? "")
        : valueOf(cell, strings, formats, from1904);
    sheets.push({
      name: sheet.getAttribute("name") ?? "",
      ...gridOf(rows.slice(0, MAX_ROWS), show),
      total: rows.length,
      comments: await commentsOf(part, office, persons),
    });
  }
  return sheets;
}

/** Conversations, where there are any: what stands beside them for older programs repeats them. */
async function commentsOf(part: string, office: OfficePackage, persons: Element[]): Promise<Comment[]> {
  const targets = [...(await office.relations(part)).values()].map(({ target }) => target);
  const threads = await office.xml(
    targets.find((target) => /threadedComment[^/]*\.xml$/i.test(target)) ?? "",
  );
  const plain = await office.xml(targets.find((target) => /\/comments?[^/]*\.xml$/i.test(target)) ?? "");
  const authors = children(child(plain, "authors"), "author");
  const nameOf = (one: Element) =>
    threads
      ? persons
          .find((person) => person.getAttribute("id") === one.getAttribute("personId"))
          ?.getAttribute("displayName")
      : authors[Number(one.getAttribute("authorId"))]?.textContent;
  return children(threads ?? child(plain, "commentList"), threads ? "threadedComment" : "comment")
    .slice(0, MAX_COMMENTS)
    .map((one) => ({
      place: one.getAttribute("ref") ?? "",
      author: nameOf(one) ?? "",
      text: threads ? (child(one, "text")?.textContent ?? "") : textOf(child(one, "text")),
    }));
}

function gridOf(
  rows: Element[],
  show: (cell: Element) => string,
): Pick<Sheet, "rows" | "numbers" | "letters"> {
  let before = 0;
  const grid = rows.map((row) => {
    const texts: string[] = [];
    let next = 0;
    for (const cell of children(row, "c")) {
      const column = columnOf(cell.getAttribute("r")) ?? next;
      if (column < MAX_COLUMNS) texts[column] = show(cell);
      next = column + 1;
    }
    before = Number(row.getAttribute("r")) || before + 1;
    return { number: before, texts: Array.from(texts, (text) => text ?? "") };
  });
  const shown = grid.filter(({ texts }) => texts.some(Boolean));
  const first = Math.min(...shown.map(({ texts }) => texts.findIndex(Boolean)));
  const end = Math.max(0, ...shown.map(({ texts }) => texts.length));
  return {
    rows: shown.map(({ texts }) => texts.slice(first)),
    numbers: shown.map(({ number }) => number),
    letters: Array.from({ length: end }, (_, column) => lettersOf(column)).slice(first),
  };
}

/** `C7` is column 2. */
function columnOf(place: string | null): number | null {
  const letters = /^[A-Z]{1,3}/.exec(place ?? "")?.[0];
  return letters ? [...letters].reduce((sum, letter) => sum * 26 + letter.charCodeAt(0) - 64, 0) - 1 : null;
}

function lettersOf(column: number): string {
  const last = String.fromCharCode(65 + (column % 26));
  return column < 26 ? last : lettersOf(Math.floor(column / 26) - 1) + last;
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
  // Numbers of articles, accounts and cards: a digit that changes makes another one. Programs also write them as 1.2E+16.
  const whole = /^-?\d+$/.test(value) ? value : String(Number.isInteger(number) ? number : round(number, 15));
  return format && number >= 0 && /^\d+$/.test(whole) ? whole.padStart(format.digits, "0") : whole;
}

/** As many significant digits as Excel shows, and no traces of binary fractions. */
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

/** Number formats by cell style. */
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
