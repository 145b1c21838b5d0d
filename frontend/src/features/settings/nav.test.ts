import { readdirSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { expect, test } from "vitest";
import { SECTIONS } from "./nav";

const SRC = resolve(import.meta.dirname, "../..");

test("links to the settings lead to sections that are there", () => {
  const code = readdirSync(SRC, { recursive: true, encoding: "utf8" })
    .filter((file) => /\.tsx?$/.test(file) && !file.includes(".test."))
    .map((file) => readFileSync(join(SRC, file), "utf8"))
    .join("\n");
  const linked = [...code.matchAll(/settingsPath\("(\w+)"\)/g)].map(([, id]) => id);
  expect(linked).toContain("models");
  expect(SECTIONS.map(({ id }) => id)).toEqual(expect.arrayContaining(linked));
});
