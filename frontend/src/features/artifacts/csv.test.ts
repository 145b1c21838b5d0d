import { describe, expect, it } from "vitest";
import { columnTypes, hasHeader, numberOf, parseTable, sorted } from "./csv";

const rows = (text: string, options?: Parameters<typeof parseTable>[1]) => parseTable(text, options).rows;

describe("parseTable", () => {
  it.each([
    [
      "a,b\n1,2",
      [
        ["a", "b"],
        ["1", "2"],
      ],
    ],
    [
      "a,b\r\n1,2\r\n",
      [
        ["a", "b"],
        ["1", "2"],
      ],
    ],
    [
      "a,b\r1,2",
      [
        ["a", "b"],
        ["1", "2"],
      ],
    ],
    [
      "\uFEFFa,b\n1,2",
      [
        ["a", "b"],
        ["1", "2"],
      ],
    ],
    ['"a,b",c', [["a,b", "c"]]],
    ['"say ""hi""",x', [['say "hi"', "x"]]],
    [
      '"two\r\nlines",x\n1,2',
      [
        ["two\r\nlines", "x"],
        ["1", "2"],
      ],
    ],
    ['5" pipe,x', [['5" pipe', "x"]]], // a quote inside of a field is only a character
    ['"a"b,c', [["ab", "c"]]],
    ['"never closed,\n1', [["never closed,\n1"]]],
    ['"",""', [["", ""]]],
    [
      "a,,\n,,",
      [
        ["a", "", ""],
        ["", "", ""],
      ],
    ],
    [
      "a,b\n\n\n1,2\n\n",
      [
        ["a", "b"],
        ["1", "2"],
      ],
    ],
    ["", []],
    ["\n", []],
    ["only", [["only"]]],
  ])("%j", (text, expected) => expect(rows(text, { delimiter: "," })).toEqual(expected));

  it.each([
    ["a;b;c\n1,5;2;3", ";"],
    ["a\tb\n1\t2", "\t"],
    ["a|b\n1|2", "|"],
    ["name,note\nx,a; b; c\ny,d", ","],
    ['"a;b",c\n"d;e",f', ","],
    ["sep=;\na,1;b,1", ";"],
    ["one column\nonly", ","],
  ])("finds out what separates the fields of %j", (text, delimiter) =>
    expect(parseTable(text).delimiter).toBe(delimiter),
  );

  it("leaves out the row that a cut goes through, and no other", () => {
    expect(rows("a,b\n1,2\n3,", { partial: true })).toEqual([
      ["a", "b"],
      ["1", "2"],
    ]);
    expect(rows('a,b\n"1\n2', { partial: true })).toEqual([["a", "b"]]);
    expect(rows("a,b\n1,2\n", { partial: true })).toEqual([
      ["a", "b"],
      ["1", "2"],
    ]);
  });

  it("takes a megabyte without an effort", () => {
    const text = '1,"a ""b""",3\n'.repeat(80_000);
    expect(rows(text)).toHaveLength(80_000);
  });
});

describe("columns", () => {
  it("tells numbers, dates and texts", () => {
    const body = [
      ["1,234.5", "2026-01-02", "x", "12%", "1.5e-3", "007a", ""],
      ["-3", "2026-01-03T10:00:00Z", "1", "$4", "2", "1", ""],
    ];
    const types = ["number", "date", "text", "number", "number", "text", "text"];
    expect(columnTypes(body, 7)).toEqual(types);
  });

  it("knows a row of names", () => {
    expect(
      hasHeader([
        ["month", "sales"],
        ["Jan", "10"],
      ]),
    ).toBe(true);
    expect(
      hasHeader([
        ["1", "2"],
        ["3", "4"],
      ]),
    ).toBe(false);
    expect(
      hasHeader([
        ["a", "a"],
        ["3", "4"],
      ]),
    ).toBe(false);
    expect(hasHeader([["alone", "x"]])).toBe(false);
  });

  it("sorts numbers as numbers, words as people do, and what is empty last", () => {
    const column = (type: "number" | "text", descending: boolean, values: string[]) =>
      sorted(
        values.map((value) => [value]),
        { column: 0, descending },
        type,
        "en",
      ).map((row) => row[0]);
    expect(column("number", false, ["10", "", "9", "-1", "1,000"])).toEqual(["-1", "9", "10", "1,000", ""]);
    expect(column("number", true, ["10", "", "9"])).toEqual(["10", "9", ""]);
    expect(column("text", false, ["b", "a10", "A2", ""])).toEqual(["A2", "a10", "b", ""]);
  });

  it("reads numbers with signs around them", () => {
    expect(["$1,234.50", "12 %", "−3", ".5", ""].map(numberOf)).toEqual([1234.5, 12, -3, 0.5, NaN]);
  });
});
