import { expect, it } from "vitest";
import { plain } from "./snippet";

it.each([
  ["## Title and **bold** `code`", "Title and bold code"],
  ["- see [the page](https://a.example/x) and [citation:A](https://b.example", "see the page and A"],
  ["| a | b |", " a b "],
  ["a * b and snake_case stay", "a * b and snake_case stay"],
])("%s", (markdown, text) => expect(plain(markdown)).toBe(text));
