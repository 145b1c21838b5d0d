import { expect, test } from "vitest";
import { pretty } from "./json";

test.each([
  '{"a":[1,2,{"b":null}],"e":{},"f":[ ],"s":"\\u4e2d \\"x\\" \\\\"}',
  ' [[],[[]],{"a":{"b":[true,false,-1.5]}}]\r\n',
  '"text"',
  "-0.5",
])("%s stands as JSON.stringify writes it", (text) => {
  const value: unknown = JSON.parse(text);
  expect(JSON.parse(pretty(text) as string)).toEqual(value);
  expect(pretty(text)).toBe(JSON.stringify(value, null, 2).replace("中", "\\u4e2d"));
});

test("values stand as they were written", () => {
  expect(pretty('{"big":12345678901234567890,"n":1.0e3}')).toBe(
    '{\n  "big": 12345678901234567890,\n  "n": 1.0e3\n}',
  );
});

test.each([
  ['{"a":1,,}', 1, 8],
  ['{"a":1,}', 1, 8],
  ['{\n  "a": 1\n  "b": 2}', 3, 3],
  ["[1, 2", 1, 6],
  ["[1}", 1, 3],
  ['["no end', 1, 2],
  ["{'a': 1}", 1, 2],
  ["[NaN, 01]", 1, 2],
  ['["tab\there"]', 1, 2],
  ["{} {}", 1, 4],
  ["]", 1, 1],
])("%s is no JSON at %i:%i", (text, line, column) => {
  expect(() => JSON.parse(text) as unknown).toThrow();
  expect(pretty(text)).toEqual({ line, column });
});

test("however deep it goes, it stays readable and short", () => {
  const deep = `${"[".repeat(20_000)}${"]".repeat(20_000)}`;
  expect((pretty(deep) as string).length).toBeLessThan(100 * deep.length);
});
