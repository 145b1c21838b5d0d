import { expect, test } from "vitest";
import { patternOf, placesOf, rangesIn } from "./find";
import type { Turn } from "../thread/turns";

const turn = (question: string, answer: string) =>
  ({
    question: { text: question },
    steps: [{ kind: "text", text: "on the way", id: "s" }],
    answer: { text: answer },
    clarification: null,
  }) as unknown as Turn;

const found = (query: string, ...turns: Turn[]) => placesOf(turns, patternOf(query)!);

test("each occurrence in what was said is found, in any case, whatever its letters mean to a pattern", () => {
  const turns = [turn("What is a+b?", "A+B is **a**+b."), turn("other", "nothing")];
  expect(found("a+b", ...turns)).toEqual([
    { turn: 0, nth: 0 },
    { turn: 0, nth: 1 },
    { turn: 0, nth: 2 },
  ]);
  expect(found("[(", ...turns)).toEqual([]);
  expect(found("on  the WAY", ...turns)).toHaveLength(2);
  expect(found("注意", turn("x", "**注意：** 文件"))).toHaveLength(1);
});

test("signs of Markdown and addresses of links are not part of the text, but those of code are", () => {
  expect(found("see here now", turn("x", "see [here](https://a.example/see) **now**"))).toHaveLength(1);
  expect(found("a.example", turn("x", "see [here](https://a.example/see)"))).toEqual([]);
  expect(found("2**3", turn("x", "`2**3`"))).toHaveLength(1);
  expect(found("found", turn("](".repeat(100_000), "found"))).toHaveLength(1); // without an effort
});

test("words are found across elements of a line, not across blocks, and not in what is unseen", () => {
  document.body.innerHTML =
    "<p>Good <b>mor</b>ning</p><p>Good</p><p>morning</p><button>Good morning</button>";
  const ranges = rangesIn(document.body, patternOf("good morning")!);
  expect(ranges.map(String)).toEqual(["Good morning"]);
});
