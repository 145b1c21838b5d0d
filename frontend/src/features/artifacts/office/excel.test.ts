import { expect, test } from "vitest";
import { readSheets } from "./excel";
import type { OfficePackage } from "./package";

/** A workbook with one cell, 0.5, in a number format. */
function workbook(format: string): OfficePackage {
  const parts: Record<string, string> = {
    "xl/workbook.xml": '<w><sheets><sheet name="One"/></sheets></w>',
    "xl/styles.xml": `<s><numFmts><numFmt numFmtId="164" formatCode="${format}"/></numFmts><cellXfs><xf numFmtId="164"/></cellXfs></s>`,
    "one.xml": '<s><sheetData><row><c r="A1" s="0"><v>0.5</v></c></row></sheetData></s>',
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

const shown = async (format: string) => (await readSheets(workbook(format)))[0]?.rows;

test("a number is shown in its format", async () => {
  expect(await shown("0%")).toEqual([["50%"]]);
});

test("a format made to be slow takes no time", async () => {
  expect(await shown(`0%${"[".repeat(400_000)}`)).toEqual([["50%"]]);
  expect(await shown(`0%${"&quot;x[\\".repeat(100_000)}`)).toEqual([["50%"]]);
});
