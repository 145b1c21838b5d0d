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
