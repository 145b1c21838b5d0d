import { expect, it } from "vitest";
import { hasTwoSides, isText, kindName, kindOf } from "./kinds";

it.each([
  ["report.md", undefined, "markdown"],
  ["REPORT.MD", undefined, "markdown"],
  ["index.html", undefined, "html"],
  ["chart.svg", undefined, "svg"],
  ["data.csv", undefined, "table"],
  ["data.tsv", undefined, "table"],
  ["analysis.ipynb", "text/plain", "notebook"],
  ["package.json", undefined, "json"],
  ["main.py", undefined, "code"],
  ["archive.tar.gz", undefined, "archive"],
  ["slides.pptx", undefined, "office"],
  ["Dockerfile", undefined, "code"],
  ["LICENSE", undefined, "text"],
  [".gitignore", "text/plain; charset=utf-8", "text"], // a dot at the beginning makes no extension
  [".env", "text/plain", "text"],
  ["noextension", "text/plain", "text"],
  ["noextension", "application/octet-stream", "binary"],
  ["photo", "image/png", "image"],
  ["scan.tiff", "image/tiff", "binary"], // browsers do not show it
  ["data.parquet", "application/octet-stream", "binary"],
  ["weird.xyz", "text/plain", "text"],
  ["weird.xyz", undefined, "binary"],
  ["video.mp4", undefined, "video"],
  ["constructor", undefined, "binary"],
])("%s (%s) is looked at as %s", (name, mime, kind) => expect(kindOf(name, mime)).toBe(kind));

it("knows which have a source to read, and which a view besides", () => {
  expect([isText("html"), isText("code"), isText("pdf")]).toEqual([true, true, false]);
  expect([hasTwoSides("html"), hasTwoSides("code"), hasTwoSides("pdf")]).toEqual([true, false, false]);
});

it("calls Office documents by their programs", () => {
  const names = ["a.DOCX", "b.xls", "c.pptx", "d.odt", "e.md", "f"].map((name) =>
    kindName(name, kindOf(name)),
  );
  expect(names).toEqual(["word", "excel", "powerpoint", "office", "markdown", "binary"]);
});
