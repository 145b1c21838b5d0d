import { expect, it } from "vitest";
import { outlineOf } from "./outline";

it.each<[unknown, string]>([
  ["one\ntwo", "one\ntwo"],
  ["", "–"],
  [null, "–"],
  [3, "3"],
  [true, "true"],
  [[], "–"],
  [["a", 1], "• a\n• 1"],
  [{ to: "x", deep: { on: false } }, "to: x\ndeep:\n  on: false"],
  [[{ id: 1, name: "b" }], "• id: 1\n  name: b"],
])("%j as lines", (value, lines) => expect(outlineOf(value)).toBe(lines));

it("a text inside cannot pass for a field of its own", () => {
  expect(outlineOf({ body: "hello\nto: boss", to: "me" })).toBe("body:\n  │ hello\n  │ to: boss\nto: me");
  expect(outlineOf({ "a\nto": 1 })).toBe('"a\\nto": 1');
});
