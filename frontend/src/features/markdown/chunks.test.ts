import { describe, expect, it } from "vitest";
import { chunksOf } from "./chunks";

const PARAGRAPH = `${"word ".repeat(60).trim()}\n\n`;
const LONG = PARAGRAPH.repeat(20);

describe("a long text in chunks", () => {
  it("is whole, and what has come stays as it is while it grows", () => {
    let before: string[] = [];
    for (let end = 0; end <= LONG.length; end += 97) {
      const now = chunksOf(LONG.slice(0, end));
      expect(now.join("")).toBe(LONG.slice(0, end));
      if (before.length > 1) expect(now.slice(0, before.length - 1)).toEqual(before.slice(0, -1));
      before = now;
    }
    expect(before.length).toBeGreaterThan(3);
  });

  it.each([
    ["code", `\`\`\`py\n${PARAGRAPH.repeat(20)}\`\`\`\n`],
    ["code in other signs", `~~~~\n${PARAGRAPH.repeat(10)}~~~\n\n${PARAGRAPH.repeat(10)}~~~~\n`],
    ["code in a list", `1. one\n\n   \`\`\`\n\n${PARAGRAPH.repeat(20)}   \`\`\`\n`],
    ["mathematics", `$$\n${"a\n\n".repeat(1200)}$$\n`],
    ["a list with gaps", "- an item of the list\n\n  and more of it\n\n".repeat(200)],
    ["a numbered list with gaps", "1. an item of the list\n\n".repeat(300)],
    ["a list of stars", "* an item of the list\n\n".repeat(300)],
    ["HTML", `<details>\n\n${LONG}</details>\n`],
    ["notes", `A word[^1].\n\n${LONG}[^1]: The note.\n`],
    ["links by name", `A [word][one].\n\n${LONG}[one]: https://example.com\n`],
  ])("is not cut within %s", (_, text) => {
    expect(chunksOf(text)).toEqual([text]);
  });
});
