import { describe, expect, it } from "vitest";
import { withCitations } from "./citations";

const cited = (text: string, streaming = false) => withCitations(text, streaming);
const chip = (number: number, url: string) => `[${number}](<${url}> "citation")`;
const A = "https://a.example/one";
const B = "https://b.example/two?x=(1)";

describe("citations by title", () => {
  it("get numbers in the order in which they come, one for each page", () => {
    const { text, sources } = cited(
      `X [citation:First](${A}), y [citation:Second](<${B}>)[citation:](http://www.a.example/one/#part).`,
    );
    expect(text).toBe(`X ${chip(1, A)}, y ${chip(2, B)}${chip(1, A)}.`);
    expect(sources.map(({ number, title }) => [number, title])).toEqual([
      [1, "First"],
      [2, "Second"],
    ]);
  });

  it.each([
    [`[citation:A [b] \`c\`](${A})`, "A [b] c"],
    [`[citation: **Bold** title ](${A} "t")`, "Bold title"],
    [`| a | [citation:T](${A}) |`, "T"],
  ])("%s", (text, title) => {
    expect(cited(text).sources).toEqual([{ number: 1, url: A, title, kept: null }]);
  });

  it("are links only to the web", () => {
    const { text, sources } = cited("[citation:X](javascript:alert(1)) [citation:Y](/etc/passwd)");
    expect([text, sources]).toEqual(["[X](javascript:alert(1)) [Y](/etc/passwd)", []]);
  });

  it("stay as they are in code", () => {
    const code = `\`[citation:X](${A})\`\n\n\`\`\`\n[citation:X](${A})\n\`\`\``;
    expect(cited(code)).toEqual({ text: code, sources: [] });
  });

  it("cannot break out of their link", () => {
    const { text } = cited("[citation:X](https://a.example/a|b\\c)");
    expect(text).toBe(chip(1, "https://a.example/a%7Cb%5Cc"));
  });

  it("never show a half while they come", () => {
    const whole = `One [citation:First](${A}) and two [citation:Second](${B}) end.`;
    for (let end = 0; end <= whole.length; end++)
      expect(cited(whole.slice(0, end), true).text).not.toMatch(/\[c|citation:/);
    expect(cited(whole, true).text).toBe(`One ${chip(1, A)} and two ${chip(2, B)} end.`);
  });
});

describe("citations by number", () => {
  const list = [
    "# Sources",
    "",
    `[1] City of Aarau, Quieter streets. ${A}. ([as it was read](/mnt/user-data/workspace/.web/a-1.md))`,
    `- **[2]** [Noise in Bergen](${B})`,
    "[3] A book without address",
  ].join("\n");

  it("are those that the list of sources holds with an address", () => {
    const { text, sources } = cited(`It fell [2], twice [1, 2] and more [3][1]. a[4] b[^1]\n\n${list}`);
    const [one, two] = [chip(1, A), chip(2, B)];
    expect(text.split("\n")[0]).toBe(`It fell ${two}, twice ${one}${two} and more [3]${one}. a[4] b[^1]`);
    expect(sources).toEqual([
      {
        number: 1,
        url: A,
        title: "City of Aarau, Quieter streets",
        kept: "/mnt/user-data/workspace/.web/a-1.md",
      },
      expect.objectContaining({ number: 2, title: "Noise in Bergen" }),
    ]);
  });

  it("leave the list itself as lines", () => {
    expect(cited(`x [1]\n\n${list}`).text).toContain(".md))  \n- **[2]** [Noise in Bergen]");
  });

  it("mix with citations by title, which go on counting", () => {
    const { sources } = cited(`x [1] y [citation:New](https://c.example)\n\n${list}`);
    expect(sources.map(({ number }) => number)).toEqual([1, 3]);
  });

  it("take links, notes and pictures for what they are", () => {
    const text = `[1](https://x.example) ![1] \\[1]\n\n${list}`;
    expect(cited(text).sources).toEqual([]);
  });
});

it("a text without sources is the same text", () => {
  const text = "a [link](https://a.example) and [1] and $x$";
  expect(cited(text).text).toBe(text);
});

it.each(["[citation:", "[citation:a](", "[1, ", "[1] https://a.example \n", "[[", "(<"])(
  "is linear in %j",
  (piece) => {
    const begun = performance.now();
    cited(piece.repeat(20_000), true);
    cited(`[1]\n\n[1] https://a.example ${piece.replaceAll("\n", " ").repeat(20_000)}`);
    expect(performance.now() - begun).toBeLessThan(3000);
  },
);
