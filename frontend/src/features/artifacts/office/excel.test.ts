import { expect, test } from "vitest";
import { readSheets } from "./excel";
import type { OfficePackage } from "./package";

/** A workbook with one cell in a number format. */
function workbook(format: string, cell: string): OfficePackage {
  const parts: Record<string, string> = {
    "xl/workbook.xml": '<w><sheets><sheet name="One"/></sheets></w>',
    "xl/styles.xml": `<s><numFmts><numFmt numFmtId="164" formatCode="${format}"/></numFmts><cellXfs><xf numFmtId="164"/></cellXfs></s>`,
    "one.xml": `<s><sheetData><row>${cell}</row></sheetData></s>`,
  };
  const xml = (part: string) =>
    Promise.resolve(
      parts[part] === undefined
        ? null
        : new DOMParser().parseFromString(parts[part], "text/xml").documentElement,
    );
  // Without its id: happy-dom knows no namespaces of attributes.
  const relations = () => Promise.resolve(new Map([["", { target: "one.xml" }]]));
  return { xml, relations } as unknown as OfficePackage;
}

const shown = async (format: string, value = "0.5", rest = "") =>
  (await sheetsOf(format, `<c r="A1" s="0">${rest}<v>${value}</v></c>`))[0]?.rows;
const sheetsOf = (format: string, cell: string) =>
  readSheets(workbook(format, cell), (formula) => `=${formula} (not calculated)`);

test("a number is shown in its format", async () => {
  expect(await shown("0%")).toEqual([["50%"]]);
  expect(await shown("00000", "1067")).toEqual([["01067"]]);
  expect(await shown("[h]:mm", "1.1041666666666667")).toEqual([["26:30:00"]]);
});

test.each(["4006381333931", "40063813339310", "123456789012345", "4111111111111111", "12345678901234567890"])(
  "every digit of %s is the file's",
  async (number) => expect(await shown("General", number)).toEqual([[number]]),
);

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
