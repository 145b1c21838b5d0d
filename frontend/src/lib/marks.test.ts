import { expect, it } from "vitest";
import { marked } from "./marks";

it.each([
  ["pay\u202Egpj.exe", "pay⟦U+202E⟧gpj.exe"],
  ["a\u200Bb\u00ADc\u2066d\uFEFF", "a⟦U+200B⟧b⟦U+00AD⟧c⟦U+2066⟧d⟦U+FEFF⟧"],
  ["tag \u{E0041}\u{E0100} filler \u3164\u2800", "tag ⟦U+E0041⟧⟦U+E0100⟧ filler ⟦U+3164⟧⟦U+2800⟧"],
  ["ls\rrm\u001b[2K\u2028\u0000", "ls⟦U+000D⟧rm⟦U+001B⟧[2K⟦U+2028⟧⟦U+0000⟧"],
  ["half \ud800", "half ⟦U+D800⟧"],
])("what cannot be seen is shown: %j", (text, seen) => expect(marked(text)).toBe(seen));

it.each(["two\n\tlines", "你好，世界　。", "naïve – שלום", "❤️ 👩‍💻 👨🏽‍🚀"])(
  "what can be seen stays: %s",
  (text) => expect(marked(text)).toBe(text),
);
