import { expect, it } from "vitest";
import { withClearMath } from "./math";

it.each([
  ["Let $x^2$ be", "Let $$x^2$$ be"],
  ["\\(a+b\\) and \\[c\\]", "$$a+b$$ and \n$$\nc\n$$\n"],
  ["a\n$$b$$\nc", "a\n$$\nb\n$$\nc"],
  ["$5 and $10", "$5 and $10"],
  ["between $5-$10, US$7 and $HOME/$PATH", "between $5-$10, US$7 and $HOME/$PATH"],
  ["a \\$5 and $y$", "a \\$5 and $$y$$"],
  ["`$x$` and $$z$$", "`$x$` and $$z$$"],
  ["```sh\necho $a$\n```\n$b$", "```sh\necho $a$\n```\n$$b$$"],
  ["```sh\necho $a$ still open", "```sh\necho $a$ still open"],
])("%j", (text, clear) => {
  expect(withClearMath(text)).toBe(clear);
});

it("takes signs that never close without an effort", () => {
  for (const sign of ["\\[", "\\(", "$$", "$a", "`", "```\n"])
    expect(withClearMath(`${sign.repeat(100_000)}\n\\] \\)`)).toContain(sign);
});
