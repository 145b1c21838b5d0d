import { afterEach, expect, it } from "vitest";
import { quoted } from "@/lib/compose";
import { selectedPassage } from "./passage";

afterEach(() => document.body.replaceChildren());

function select(html: string, from: string, to = from) {
  document.body.innerHTML = html;
  const range = document.createRange();
  range.setStart(document.querySelector(from)!.firstChild!, 0);
  const end = document.querySelector(to)!.firstChild!;
  range.setEnd(end, end.textContent!.length);
  const selection = document.getSelection()!;
  selection.removeAllRanges();
  selection.addRange(range);
  return selectedPassage(selection);
}

it("a passage of an answer has the question as its place", () => {
  const found = select(
    "<article><p data-question>What  grew?</p><div data-answer><p id=a>Sales grew.</p></div></article>",
    "#a",
  );
  expect(found?.text).toBe("Sales grew.");
  expect(found?.place).toEqual({ kind: "answer", question: "What grew?" });
});

it("a passage of a file has its path and the heading above", () => {
  const file =
    "<section data-file='/mnt/user-data/outputs/r.md'><div class=prose-chat><h1>One</h1><p>x</p><h2>Two</h2><p id=b>here</p><h2>Three</h2></div></section>";
  expect(select(file, "#b")?.place).toMatchObject({ path: "/mnt/user-data/outputs/r.md", section: "Two" });
});

it.each(["<p id=c>elsewhere</p>", "<div data-answer><p id=c></p> </div>"])(
  "nothing else can be asked about",
  (html) => {
    document.body.innerHTML = html;
    const selection = document.getSelection()!;
    selection.selectAllChildren(document.querySelector("#c")!);
    expect(selectedPassage(selection)).toBeNull();
  },
);

it("a quote is every line of the passage, its place above, and never endless", () => {
  expect(quoted(" a\n\n\n\nb ", "r.md")).toBe("> r.md:\n> a\n>\n> b");
  expect(quoted("word ".repeat(1000)).length).toBeLessThan(2010);
});
