import { render } from "@testing-library/react";
import { expect, it } from "vitest";
import { LocaleProvider } from "@/i18n";
import Rich from "./rich";

const drawn = (text: string) =>
  render(
    <LocaleProvider>
      <Rich text={text} streaming={false} />
    </LocaleProvider>,
  ).container;

it("tables and code are as high as they are", () => {
  const table = `| a | b |\n|---|---|\n${"| 1 | 2 |\n".repeat(60)}`;
  const box = drawn(`${table}\n\`\`\`text\n${"line\n".repeat(60)}\`\`\`\n`);
  expect(box.querySelectorAll("tbody tr")).toHaveLength(60);
  const limited = [...box.querySelectorAll<HTMLElement>("*")].filter((one) => one.style.maxHeight);
  expect(limited.map((one) => one.outerHTML.slice(0, 200))).toEqual([]);
});

it("Chinese text is emphasised without blanks around it", () => {
  const strong = drawn("**注意：**请先备份。他说**“好”**。").querySelectorAll("[data-streamdown=strong]");
  expect([...strong].map((one) => one.textContent)).toEqual(["注意：", "“好”"]);
});

it("each block has the direction of its own text", () => {
  const box = drawn("First in English.\n\nهذا نص عربي طويل.");
  const [english, arabic] = [...box.querySelectorAll("p")].map((p) =>
    p.closest("[dir]")?.getAttribute("dir"),
  );
  expect([english ?? "ltr", arabic]).toEqual(["ltr", "rtl"]);
});

it("a range of numbers is not struck through, in Chinese neither", () => {
  const box = drawn("About 100~200 or 300~400 rows, 100~200个或300~400个, ~~gone~~.");
  expect([...box.querySelectorAll("del")].map((one) => one.textContent)).toEqual(["gone"]);
  expect(box.textContent).toContain("100~200 or 300~400 rows, 100~200个或300~400个");
});

it.each([
  "A Vec<T> in <path> and <file-name>, HashMap<K, V>.",
  "<T> begins the line",
  "Set the <title> of </page>.",
  "Box<A>, Set<S>, Vec<I>, Future<B>, and a<b and c>d.",
  "Write to <someone@example.com> or <https://example.com/a>.",
])("words in angle brackets are words: %s", (text) => {
  expect(drawn(text).textContent).toContain(text.replace(/<((?:https|someone)[^>]*)>/g, "$1"));
});

it("HTML is HTML, code is code, and a link with brackets is a link", () => {
  const box = drawn("H<sub>2</sub>O `<T>` [x](</mnt/user-data/outputs/a b.md>)<script>alert(1)</script>");
  expect(box.querySelector("sub")?.textContent).toBe("2");
  expect(box.textContent).toBe("H2O <T> x");
});

it("a table and a list have one direction, whatever script a cell is in", () => {
  const box = drawn(
    "| שם | API |\n|---|---|\n| Server | 12 |\n\n- Docker\n- שרת המידע של החברה\n\n1. First\n2. Second",
  );
  const dirs = (selector: string) =>
    [...box.querySelectorAll(selector)].map((one) => one.getAttribute("dir"));
  expect(dirs("th, td")).toEqual(["rtl", "rtl", "rtl", "rtl"]);
  expect(dirs("[data-streamdown=table-wrapper]")).toEqual(["rtl"]);
  expect(dirs("ul, ul > li")).toEqual(["rtl", "rtl", "rtl"]);
  expect(dirs("ol, ol > li")).toEqual(["ltr", "ltr", "ltr"]);
});

it("a head of a table without words is a cell", () => {
  const heads = drawn("| | Sends |\n|---|---|\n| mail | yes |").querySelectorAll("th");
  expect([...heads].map((head) => head.getAttribute("role"))).toEqual(["cell", null]);
});

it("a footnote leads to its own text, also beside another answer", () => {
  const text = "Said[^1].\n\n[^1]: Source.";
  const { container } = render(
    <LocaleProvider>
      <Rich text={text} streaming={false} />
      <Rich text={text} streaming={false} />
    </LocaleProvider>,
  );
  const targets = [...container.querySelectorAll("sup a")].map((a) => a.getAttribute("href")?.slice(1) ?? "");
  expect(new Set(targets).size).toBe(2);
  for (const target of targets) expect(container.querySelectorAll(`[id="${target}"]`)).toHaveLength(1);
});

it("a callout has its title in place of its mark, a quotation stays one", () => {
  const box = drawn("> [!NOTE]\n> Useful.\n\n> [!WARNING]\n> **Hot**\n\n> [!OTHER]\n> words");
  const quotes = [...box.querySelectorAll("blockquote")];
  expect(quotes.map((one) => one.dataset.callout)).toEqual(["note", "warning", undefined]);
  expect(quotes.map((one) => one.textContent.trim().split(/\s+/).join(" "))).toEqual([
    "Note Useful.",
    "Warning Hot",
    "[!OTHER] words",
  ]);
});

it("footnotes stand below a heading", () => {
  const notes = drawn("1. one[^1]\n\n[^1]: Source.").querySelector("[data-footnotes]");
  expect(notes?.querySelector("h2")?.textContent).toBe("Footnotes");
  expect(notes?.querySelector("h2")?.className).not.toContain("sr-only");
});
