import { expect, it } from "vitest";
import { parseNotebook, textOfHtml } from "./notebook";

const outputsOf = (...outputs: unknown[]) =>
  parseNotebook(
    JSON.stringify({ cells: [{ cell_type: "code", source: ["a\n", "b"], execution_count: 3, outputs }] }),
  ).cells[0]!;

it("reads cells, their text in one piece or in lines", () => {
  const notebook = parseNotebook(
    JSON.stringify({
      metadata: { language_info: { name: "julia" } },
      cells: [{ cell_type: "markdown", source: "# T" }, { cell_type: "raw", source: ["r"] }, "rubbish", null],
    }),
  );
  expect(notebook.language).toBe("julia");
  expect(notebook.cells.map((cell) => [cell.kind, cell.source])).toEqual([
    ["markdown", "# T"],
    ["raw", "r"],
    ["raw", ""],
    ["raw", ""],
  ]);
  expect(outputsOf().source).toBe("a\nb");
});

it("shows prints and errors as text without terminal colours", () => {
  const cell = outputsOf(
    { output_type: "stream", name: "stdout", text: ["one\n", "two\n"] },
    { output_type: "stream", name: "stderr", text: "careful" },
    { output_type: "error", ename: "E", evalue: "v", traceback: ["\u001b[0;31mE\u001b[0m: v"] },
    { output_type: "error", ename: "E", evalue: "v", traceback: [] },
    { output_type: "display_data", data: {} },
  );
  expect(cell.outputs).toEqual([
    { kind: "text", text: "one\ntwo", isError: false },
    { kind: "text", text: "careful", isError: true },
    { kind: "text", text: "E: v", isError: true },
    { kind: "text", text: "E: v", isError: true },
  ]);
});

it("prefers pictures to text, and text to pages", () => {
  const data = (value: object) => outputsOf({ output_type: "execute_result", data: value }).outputs[0];
  expect(data({ "image/png": "aGk=\n", "text/plain": "<Figure>" })).toEqual({
    kind: "image",
    src: "data:image/png;base64,aGk=",
  });
  expect(data({ "image/svg+xml": ["<svg>", "</svg>"] })).toEqual({
    kind: "image",
    src: "data:image/svg+xml;charset=utf-8,%3Csvg%3E%3C%2Fsvg%3E",
  });
  expect(data({ "text/html": "<b>x</b>", "text/plain": "x y" })).toMatchObject({ text: "x y" });
  expect(data({ "text/html": "<b>only</b>" })).toMatchObject({ text: "only" });
  expect(data({ "application/json": { a: 1 } })).toMatchObject({ text: '{\n  "a": 1\n}' });
  expect(data({ "image/png": '"><script>', "text/plain": "t" })).toMatchObject({ text: "t" });
});

it("keeps nothing of a page but its words", () => {
  const html =
    "<style>x{}</style><script>alert(1)</script><img src=x onerror=alert(1)><p>Hello</p><p>you</p>";
  expect(textOfHtml(html)).toBe("Hello\nyou");
});

it("reads the old format", () => {
  const old = {
    worksheets: [
      {
        cells: [
          { cell_type: "code", input: "1", prompt_number: 2, outputs: [{ output_type: "pyout", text: "1" }] },
        ],
      },
    ],
  };
  expect(parseNotebook(JSON.stringify(old)).cells[0]).toEqual({
    kind: "code",
    source: "1",
    count: 2,
    outputs: [{ kind: "text", text: "1", isError: false }],
  });
});

it.each(["", "[]", '{"cells": 1}', "{"])("refuses %j", (text) =>
  expect(() => parseNotebook(text)).toThrow(SyntaxError),
);

it("takes long runs of blanks and empty lines without an effort", () => {
  const [blanks, lines] = [" ".repeat(300_000), "\n".repeat(300_000)];
  expect(textOfHtml(`a${blanks}b`).length).toBe(300_002);
  expect(textOfHtml(`a${blanks}${lines}b`)).toBe("a\nb");
  const text = `a${lines}b`;
  const outputs = outputsOf({ output_type: "stream", name: "stdout", text: text + lines }).outputs;
  expect(outputs).toEqual([{ kind: "text", text, isError: false }]);
});
