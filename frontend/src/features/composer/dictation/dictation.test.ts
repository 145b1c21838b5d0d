import { expect, test } from "vitest";
import { insert } from "./dictation";

test.each([
  ["", 0, 0, "Hello.", "Hello."],
  ["Say:", 4, 4, "hello", "Say: hello"],
  ["one three", 4, 4, "two", "one two three"],
  ["a long word", 2, 6, "short", "a short word"],
  ["What", 4, 4, "?", "What?"],
  ["请", 1, 1, "写一份报告", "请写一份报告"],
  ["line\n", 5, 5, "next", "line\nnext"],
])("into %j at %i to %i goes %j", (value, start, end, text, whole) => {
  const field = document.createElement("textarea");
  field.value = value;
  field.setSelectionRange(start, end);
  let inputs = 0;
  field.addEventListener("input", () => (inputs += 1));
  insert(field, text);
  expect([field.value, inputs]).toEqual([whole, 1]);
});
