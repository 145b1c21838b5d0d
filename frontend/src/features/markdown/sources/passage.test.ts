import { expect, it } from "vitest";
import { passageOf } from "./passage";

const PAGE = `# Deer

Source: https://example.org/deer

They are mammals. Deer live in [forests](https://example.org/forest) of the north.

- In 2024 the **population** grew by 34 % to 1.2 million animals.
- Wolves eat them.

在森林里，鹿的数量增加了。它们吃草。
`;

it("finds the sentence with the same words and figures", () => {
  const found = passageOf(PAGE, "The population grew by 34 % in 2024, the agency reports.");
  expect(found.marked).toBe("In 2024 the population grew by 34 % to 1.2 million animals.");
  expect(found.before).toBe("Deer live in forests of the north.");
});

it("finds Chinese sentences", () => {
  expect(passageOf(PAGE, "报告说森林里鹿的数量增加").marked).toBe("在森林里，鹿的数量增加了。");
});

it("shows the beginning where nothing is like the statement", () => {
  const found = passageOf(PAGE, "Quantum computers factor integers.");
  expect(found.marked).toBe("");
  expect(found.after).toMatch(/^They are mammals\. Deer live/);
});

it("an excerpt stays short, whatever the page holds", () => {
  const { before, marked, after } = passageOf(`${"word ".repeat(5000)} 77 percent`, "77 percent of words");
  expect((before + marked + after).length).toBeLessThan(800);
  expect(passageOf("", "x")).toEqual({ before: "", marked: "", after: "" });
});

it.each(["[", "](", "[a](", "*", " ", ". A", "# ", "。"])("is linear in %j", (piece) => {
  const begun = performance.now();
  passageOf(piece.repeat(100_000), "a statement of 1 page");
  expect(performance.now() - begun).toBeLessThan(3000);
});
