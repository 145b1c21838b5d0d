import { describe, expect, it } from "vitest";
import { countChanges, diffLines, folded, hunksOf, type DiffLine } from "./line-diff";

const shown = (lines: DiffLine[]) =>
  lines.map((line) => ({ same: " ", added: "+", removed: "-" })[line.kind] + line.text).join("|");
const side = (lines: DiffLine[], gone: "added" | "removed") =>
  lines.filter((line) => line.kind !== gone).map((line) => line.text);

describe("diffLines", () => {
  it.each([
    ["", "", ""],
    ["", "a\nb", "+a|+b"],
    ["a\nb\n", "", "-a|-b"],
    ["a\nb\nc", "a\nx\nc", " a|-b|+x| c"],
    ["a\r\nb", "a\nb\n", " a| b"], // only the line ends differ
    ["a", "a\n\nb", " a|+|+b"],
    ["x\nx\nx", "x\nx", " x| x|-x"],
  ])("%j → %j", (before, after, expected) => expect(shown(diffLines(before, after))).toBe(expected));

  it("gives both texts back, and no more changes than needed, whatever they are", () => {
    let seed = 7;
    const random = (n: number) => (seed = (seed * 16807) % 2147483647) % n;
    for (let round = 0; round < 300; round += 1) {
      const text = () => Array.from({ length: random(12) }, () => "abc"[random(3)]!);
      const [a, b] = [text(), text()];
      const lines = diffLines(a.join("\n"), b.join("\n"));
      expect(side(lines, "added")).toEqual(a);
      expect(side(lines, "removed")).toEqual(b);
      expect(lines.filter((line) => line.kind === "same").length).toBe(longestCommon(a, b));
    }
  });

  it("numbers the lines of both sides", () => {
    expect(diffLines("a\nb", "b\nc").map((line) => [line.before, line.after])).toEqual([
      [1, null],
      [2, 1],
      [null, 2],
    ]);
  });

  it("does not search for ever in texts that have nothing in common", () => {
    const lines = diffLines(numbered("a", 5000), numbered("b", 5000));
    expect(countChanges(lines)).toEqual({ added: 5000, removed: 5000 });
  });
});

describe("folded", () => {
  it("hides long stretches without a change and keeps every line", () => {
    const lines = diffLines(numbered("l", 30), numbered("l", 30).replace("l15\n", "new\n"));
    const pieces = folded(lines);
    expect(pieces.map((piece) => [piece.kind, piece.lines.length])).toEqual([
      ["fold", 12],
      ["lines", 8],
      ["fold", 11],
    ]);
  });

  it("shows a single hidden line instead of folding it", () => {
    const pieces = folded(diffLines("1\n2\n3\n4\nx", "1\n2\n3\n4\ny"));
    expect(pieces.every((piece) => piece.kind === "lines")).toBe(true);
  });
});

const numbered = (word: string, count: number) =>
  Array.from({ length: count }, (_, index) => `${word}${index}\n`).join("");

function longestCommon(a: string[], b: string[]): number {
  const table = Array.from({ length: a.length + 1 }, () => new Array<number>(b.length + 1).fill(0));
  for (let i = 1; i <= a.length; i += 1)
    for (let j = 1; j <= b.length; j += 1)
      table[i]![j] =
        a[i - 1] === b[j - 1] ? table[i - 1]![j - 1]! + 1 : Math.max(table[i - 1]![j]!, table[i]![j - 1]!);
  return table[a.length]![b.length]!;
}

describe("hunksOf", () => {
  it("numbers the lines of each hunk, whatever they look like", () => {
    const patch = "--- a\n+++ b\n@@ -1,2 +1,2 @@\n same\n--- x\n+++ y\n@@ -9 +9,2 @@\n-old\n+new\n+\n";
    const hunks = hunksOf(patch).map(({ lines }) => lines);
    expect(hunks.map(shown)).toEqual([" same|--- x|+++ y", "-old|+new|+"]);
    expect(hunks.map((lines) => lines.map(({ before, after }) => [before, after]))).toEqual([
      [
        [1, 1],
        [2, null],
        [null, 2],
      ],
      [
        [9, null],
        [null, 9],
        [null, 10],
      ],
    ]);
    expect(hunksOf("")).toEqual([]);
  });
});
