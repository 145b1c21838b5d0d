import { describe, expect, it } from "vitest";
import { parseAnsi, withoutAnsi } from "./ansi";

describe("parseAnsi", () => {
  it("gives colours as classes and joins what looks alike", () => {
    expect(parseAnsi("\u001b[1;31mbad\u001b[0m and \u001b[32mgood\u001b[39m, \u001b[mplain")).toEqual([
      { text: "bad", className: "text-destructive font-semibold" },
      { text: " and ", className: "" },
      { text: "good", className: "text-success" },
      { text: ", plain", className: "" },
    ]);
  });

  it("reads the 256 and true colours, and what follows them in the same sequence", () => {
    expect(parseAnsi("\u001b[38;5;196;1mred")[0]).toEqual({
      text: "red",
      className: "text-destructive font-semibold",
    });
    expect(parseAnsi("\u001b[38;2;10;200;30;4mgreen")[0]).toEqual({
      text: "green",
      className: "text-success underline",
    });
  });

  it("drops everything that is no text: cursor moves, titles, links, control characters, cut sequences", () => {
    const text =
      "a\u001b[2K\u001b[3;1Hb\u001b]0;title\u0007c\u001b]8;;https://x.y\u001b\\d\u0000\u0008e\u001b(Bf\u001b[?25l\u001b[3";
    expect(withoutAnsi(text)).not.toMatch(/[\u0000\u0008\u001b]|title|https/);
    expect(withoutAnsi(text)).toContain("abcdef");
  });

  it("shows of a line that is overwritten the last version", () => {
    expect(withoutAnsi("10%\r50%\r100%\ndone\r\nnext\r")).toBe("100%\ndone\nnext");
    expect(parseAnsi("\u001b[32m10%\r100%")).toEqual([{ text: "100%", className: "text-success" }]);
  });

  it("is plain text: markup stays what it is", () => {
    expect(withoutAnsi("<img src=x onerror=alert(1)>")).toBe("<img src=x onerror=alert(1)>");
  });
});
