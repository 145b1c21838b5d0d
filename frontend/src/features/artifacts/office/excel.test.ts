import { expect, test } from "vitest";
import { readSheets } from "./excel";
import type { OfficePackage } from "./package";

/** A workbook with one sheet, and one number format. `beside`: further parts, which the sheet refers to. */
function workbook(format: string, rows: string, beside: Record<string, string> = {}): OfficePackage {
  const parts: Record<string, string> = {
    "xl/workbook.xml": '<w><sheets><sheet name="One"/></sheets></w>',
    "xl/styles.xml": `<s><numFmts><numFmt numFmtId="164" formatCode="${format}"/></numFmts><cellXfs><xf numFmtId="164"/></cellXfs></s>`,
    "one.xml": `<s><sheetData>${rows}</sheetData></s>`,
    ...beside,
  };
  const xml = (part: string) =>
    Promise.resolve(
      parts[part] === undefined
        ? null
        : new DOMParser().parseFromString(parts[part], "text/xml").documentElement,
    );
  // Without its id: happy-dom knows no namespaces of attributes.
  const targets = ["one.xml", ...Object.keys(beside)];
  const relations = () =>
    Promise.resolve(new Map(targets.map((target, index) => [index ? `r${index}` : "", { target }])));
  return { xml, relations } as unknown as OfficePackage;
}

const shown = async (format: string, value = "0.5", rest = "") =>
  (await sheetsOf(format, `<c r="A1" s="0">${rest}<v>${value}</v></c>`))[0]?.rows;
const sheetsOf = (format: string, cell: string) => read(workbook(format, `<row>${cell}</row>`));
const read = (book: OfficePackage) => readSheets(book, (formula) => `=${formula} (not calculated)`);

test("a number is shown in its format", async () => {
  expect(await shown("0%")).toEqual([["50%"]]);
  expect(await shown("00000", "1067")).toEqual([["01067"]]);
  expect(await shown("[h]:mm", "1.1041666666666667")).toEqual([["26:30:00"]]);
});

test.each(["4006381333931", "40063813339310", "123456789012345", "4111111111111111", "12345678901234567890"])(
  "every digit of %s is the file's",
  async (number) => expect(await shown("General", number)).toEqual([[number]]),
);

test("of a whole number in scientific notation all digits of the file are shown", async () => {
  expect(await shown("General", "1.234567890123457e+16")).toEqual([["12345678901234570"]]);
  expect(await shown("General", "4.006381333931E12")).toEqual([["4006381333931"]]);
});

test("rows and columns are called as in formulas, with gaps and without names of their own", async () => {
  const cell = (place: string) => `<c r="${place}"><v>1</v></c>`;
  const [gaps] = await read(
    workbook("General", `<row r="2">${cell("B2")}</row><row r="3"/><row r="6">${cell("AA6")}</row>`),
  );
  expect(gaps?.numbers).toEqual([2, 6]);
  expect([gaps?.letters[0], gaps?.letters[24], gaps?.letters.at(-1)]).toEqual(["B", "Z", "AA"]);
  const [plain] = await read(workbook("General", "<row><c><v>1</v></c><c><v>2</v></c></row>"));
  expect([plain?.numbers, plain?.letters]).toEqual([[1], ["A", "B"]]);
});

test("comments name their cell and author; a conversation stands in place of its copy for older programs", async () => {
  const copy =
    '<c><authors><author>tc=1</author></authors><commentList><comment ref="A1" authorId="0"><text><r><t>[Threaded</t></r><r><t> comment]</t></r></text></comment></commentList></c>';
  const commentsOf = async (beside: Record<string, string>) =>
    (await read(workbook("General", "", beside)))[0]?.comments;
  expect(await commentsOf({ "xl/comments1.xml": copy })).toEqual([
    { place: "A1", author: "tc=1", text: "[Threaded comment]" },
  ]);
  expect(
    await commentsOf({
      "xl/comments1.xml": copy,
      "xl/threadedComments/threadedComment1.xml":
        '<t><threadedComment ref="A1" personId="p"><text>Sure?</text></threadedComment></t>',
      "xl/persons/person.xml": '<p><person id="p" displayName="Ada"/></p>',
    }),
  ).toEqual([{ place: "A1", author: "Ada", text: "Sure?" }]);
});

test("a fraction has no traces of how it was stored", async () => {
  expect(await shown("General", "0.30000000000000004")).toEqual([["0.3"]]);
  expect(await shown("General", "1234567890.12345")).toEqual([["1234567890.12345"]]);
});

test("a formula without a value says so, and one with an empty text does not", async () => {
  expect(await shown("General", "", "<f>E3+E4</f>")).toEqual([["=E3+E4 (not calculated)"]]);
  expect((await sheetsOf("General", '<c r="A1"><f t="shared" si="0"/></c>'))[0]?.rows).toEqual([
    ["= (not calculated)"],
  ]);
  expect((await sheetsOf("General", '<c r="A1" t="str"><f>""</f><v></v></c>'))[0]?.rows).toEqual([]);
});

test("a format made to be slow takes no time", async () => {
  expect(await shown(`0%${"[".repeat(400_000)}`)).toEqual([["50%"]]);
  expect(await shown(`0%${"&quot;x[\\".repeat(100_000)}`)).toEqual([["50%"]]);
});
