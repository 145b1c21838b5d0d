import { join } from "node:path";
import { readFileSync } from "node:fs";
import { expect, test } from "./fixtures";

test("files go with a message, and the agent sees them", async ({ page, chat }) => {
  const sales = { name: "sales.csv", mimeType: "text/csv", buffer: Buffer.from("a,b\n1,2\n") };
  await page.locator('input[type="file"]').first().setInputFiles(sales);
  await expect(page.getByText("sales.csv")).toBeVisible();
  await chat.field.fill("bash cat /mnt/user-data/uploads/sales.csv");
  await chat.field.press("Enter");
  await chat.sees("sales.csv");
  await chat.done();
  await page
    .getByRole("button", { name: /Run the command/ })
    .first()
    .click();
  await chat.sees(/1,2/);
});

test("each kind of file has a viewer", async ({ page, chat }) => {
  await chat.ask("files");
  await chat.sees("Seven files are ready.");
  await page.keyboard.press("ControlOrMeta+Shift+E");
  const panel = page
    .getByRole("complementary", { name: "Files of this conversation" })
    .or(page.getByRole("region", { name: "Files of this conversation" }));
  const open = (name: string) =>
    panel
      .getByRole("button", { name: new RegExp(name.replace(".", "\\.")) })
      .first()
      .click();
  const back = () => panel.getByRole("button", { name: "All files" }).click();

  await open("data.csv");
  await expect(panel.getByText("北京")).toBeVisible();
  await expect(panel.getByText(/said "yes"/)).toBeVisible();
  await back();
  await open("script.py");
  await expect(panel.getByText("fib").first()).toBeVisible();
  await back();
  await open("notebook.ipynb");
  await expect(panel.getByRole("heading", { name: "A notebook" })).toBeVisible();
  await back();
  await open("picture.png");
  await expect(panel.getByRole("img").first()).toBeVisible();
  await back();
  await open("chart.svg");
  await expect(panel.getByRole("img").first()).toBeVisible();
});

test("a site of several files runs, without our session", async ({ page, chat }) => {
  await chat.ask("site");
  await chat.log
    .getByRole("button", { name: /index\.html/ })
    .last()
    .click();
  const frame = page.frameLocator("iframe");
  await expect(frame.getByText("The script ran.")).toBeVisible();
  await expect(frame.locator("body")).toHaveCSS("font-family", /Georgia/);
  await frame.getByRole("link", { name: "Second page" }).click();
  await expect(frame.getByRole("heading", { name: "The second page" })).toBeVisible();
  const origin = await frame.locator("body").evaluate(
    () =>
      `${self.origin}|${(() => {
        try {
          return document.cookie;
        } catch {
          return "none";
        }
      })()}`,
  );
  expect(origin).toMatch(/^null\|(none)?$/);
});

test("a file is edited, has versions, and is handed back to the agent", async ({ page, chat }) => {
  await chat.ask("write");
  await chat.log
    .getByRole("button", { name: /report\.md/ })
    .last()
    .click();
  await page.getByRole("button", { name: "Edit", exact: true }).click();
  const editor = page.locator(".cm-content");
  await editor.click();
  await page.keyboard.press("ControlOrMeta+Home");
  await page.keyboard.type("# My own title\n\n");
  await page.getByRole("button", { name: "Save" }).first().click();
  await expect(page.getByText("Saved", { exact: true })).toBeVisible();
  await page.getByRole("button", { name: "Tell the agent" }).click();
  await expect(chat.field).toHaveValue(/report\.md/);
  await page.getByRole("button", { name: "Close", exact: true }).click();
  await expect(page.getByRole("heading", { name: "My own title" })).toBeVisible();
  await page.getByRole("button", { name: /^Versions/ }).click();
  await page
    .getByRole("menuitem", { name: /Version 1/ })
    .or(page.getByRole("menuitemradio", { name: /Version 1/ }))
    .first()
    .click();
  await expect(page.getByRole("heading", { name: "My own title" })).toBeHidden();
});

/** A document with a picture and a link to another, which links back; only names relative to where they stand. */
const LINKED = [
  "cd /mnt/user-data/outputs && mkdir -p parts",
  `echo iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg== | base64 -d > parts/dot.png`,
  `printf '# Overview\\n\\n![A dot](parts/dot.png)\\n\\n[The details](./parts/the%%20details.md)' > overview.md`,
  `printf '# Details\\n\\n[To the overview](../overview.md)' > "parts/the details.md"`,
].join("; ");

test("links and pictures in a document lead to the files beside it", async ({ page, chat }) => {
  await chat.ask(`bash ${LINKED}`);
  await page.keyboard.press("ControlOrMeta+Shift+E");
  const panel = page.getByRole("region", { name: "Files of this conversation" });
  await panel.getByRole("button", { name: "Open overview.md" }).click();
  await expect(panel.getByAltText("A dot")).toHaveJSProperty("naturalWidth", 1);
  await panel.getByRole("button", { name: "The details" }).click();
  await expect(panel.getByRole("heading", { name: "Details" })).toBeVisible();
  await panel.getByRole("button", { name: "To the overview" }).click();
  await expect(panel.getByRole("heading", { name: "Overview" })).toBeVisible();
  await panel.getByRole("button", { name: "Open dot.png" }).click();
  await expect(page).toHaveURL(/panel=.*parts%2Fdot\.png/);
  await expect(panel.getByRole("img", { name: "Image dot.png" })).toBeVisible();
});

test("one file can be downloaded, from its card and from where it is shown", async ({ page, chat }) => {
  await chat.ask("write");
  const link = { name: "Download report.md" };
  const panel = page.getByRole("region", { name: "Files of this conversation" });
  for (const place of [chat.log, panel]) {
    const waiting = page.waitForEvent("download");
    await place.getByRole("link", link).last().click();
    const file = await waiting;
    expect(file.suggestedFilename()).toBe("report.md");
    expect(readFileSync(await file.path(), "utf8")).toMatch(/^# Sales in spring\n[^]*34 %/);
  }
});

test("everything can be downloaded", async ({ page, chat }) => {
  await chat.ask("site");
  await page.getByRole("button", { name: "All files" }).click(); // the only one that was delivered has opened by itself
  const waiting = page.waitForEvent("download");
  await page
    .getByRole("link", { name: "Download all" })
    .or(page.getByRole("button", { name: "Download all" }))
    .first()
    .click();
  const file = await (await waiting).path();
  expect(readFileSync(file).subarray(0, 2).toString()).toBe("PK");
});

test("what a run changed is listed", async ({ page, chat }) => {
  await chat.ask("write");
  await page.getByRole("button", { name: "All files" }).click();
  await page.getByRole("tab", { name: "Changes" }).click();
  await expect(page.getByRole("tabpanel").getByText("report.md").first()).toBeVisible();
});

test("the files take more than half, and the device remembers how much", async ({ page, chat }) => {
  await chat.ask("write");
  const panel = page.getByRole("region", { name: "Files of this conversation" });
  await expect(panel).toBeVisible();
  const splitter = page.getByRole("separator", { name: "Files" });
  await expect(splitter).toHaveAttribute("aria-valuenow", "55");
  await splitter.focus();
  await page.keyboard.press("ArrowLeft");
  await expect(splitter).toHaveAttribute("aria-valuenow", "60");
  await page.reload();
  await expect(splitter).toHaveAttribute("aria-valuenow", "60");
});

/** Made with python-docx, openpyxl and python-pptx. */
const office = (name: string) => join(import.meta.dirname, "office", name);

test("documents of Word, Excel and PowerPoint are shown, and broken ones say so", async ({ page, chat }) => {
  const broken = {
    name: "broken.docx",
    mimeType: "application/zip",
    buffer: Buffer.from("PK\u0003\u0004, cut off"),
  };
  const old = {
    name: "old.xlsx",
    mimeType: "application/x-ole",
    buffer: Buffer.from("d0cf11e0a1b11ae1", "hex"),
  };
  const files = page.locator("input[type=file]").first();
  await files.setInputFiles(["letter.docx", "book.xlsx", "deck.pptx"].map(office));
  await files.setInputFiles([broken, old]);
  await chat.ask("hello");
  const thread = page.url().split("?")[0]!;
  const panel = page.getByRole("region", { name: "Files of this conversation" });
  const open = (name: string) =>
    page.goto(`${thread}?panel=${encodeURIComponent(`/mnt/user-data/uploads/${name}`)}`);

  await open("letter.docx");
  await expect(panel.getByRole("heading", { name: "Sales in spring" })).toBeVisible();
  await expect(panel.getByText("1.", { exact: true })).toBeVisible();
  await expect(panel.getByRole("cell", { name: "400" })).toBeVisible();
  await expect(panel.locator("article img")).toHaveJSProperty("naturalWidth", 24);

  await open("book.xlsx");
  for (const value of ["401", "25%", "2026-03-02", "=SUM(B2:B4)"])
    await expect(panel.getByRole("cell", { name: value }).first()).toBeVisible();
  await panel.getByRole("radio", { name: "Notes" }).click();
  await expect(panel.getByText('=HYPERLINK("http://192.0.2.1/","click")')).toBeVisible(); // text, not a link
  await expect(panel.getByRole("link", { name: "click" })).toHaveCount(0);

  await open("deck.pptx");
  const slide = panel.getByRole("listitem", { name: "Slide 2 of 2" });
  await expect(slide.getByText("What comes next")).toBeVisible();
  await expect(slide.getByText("• Plant")).toBeVisible();
  await expect(slide.getByRole("cell", { name: "Week" })).toBeVisible();
  await expect(slide.locator("img")).toHaveJSProperty("naturalWidth", 24);

  await open("broken.docx");
  await expect(panel.getByText("This document is damaged and can’t be previewed")).toBeVisible();
  await open("old.xlsx");
  await expect(panel.getByText("No preview for this older Office format")).toBeVisible();
  await expect(panel.getByRole("link", { name: "Download" }).first()).toBeVisible();
});
