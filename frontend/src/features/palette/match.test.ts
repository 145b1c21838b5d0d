import { expect, it } from "vitest";
import { matchesAll, ranked } from "./match";

it("finds by beginnings of words in any order", () => {
  expect(matchesAll("key api", "API tokens", "api key")).toBe(true);
  expect(matchesAll("keys", "API tokens")).toBe(false);
});

it("puts the exact name first, then what begins so, and keeps the order otherwise", () => {
  const items = ["Settings: Models", "Model x", "models", "Other"].map((label) => ({ label }));
  expect(ranked("Models", items).map(({ label }) => label)).toEqual([
    "models",
    "Settings: Models",
    "Model x",
    "Other",
  ]);
  expect(ranked("mod", items)[0]?.label).toBe("Model x");
});

it("finds whichever apostrophe is typed, and without one", () => {
  for (const typed of ["what's new", "what’s new", "whats new"])
    expect(matchesAll(typed, "What’s new")).toBe(true);
});
