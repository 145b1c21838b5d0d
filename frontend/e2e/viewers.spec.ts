import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { expect, test } from "./fixtures";
import { PYTHON, ROOT } from "./server";

/** A file with all that writers' libraries do not write (tests/documents/office.py). */
const made = (name: string) =>
  execFileSync(
    PYTHON,
    ["-c", `import sys; from tests.documents import office; sys.stdout.buffer.write(office.${name}())`],
    {
      cwd: ROOT,
    },
  );

test("documents show what stands around their text, and say what they do not know", async ({
  page,
  chat,
}) => {
  const file = (name: string, buffer: Buffer, mimeType = "application/zip") => ({ name, buffer, mimeType });
  await page
    .locator("input[type=file]")
    .first()
    .setInputFiles([
      file("contract.docx", made("full_word")),
      file("stock.xlsx", made("full_workbook")),
      file("LISEZ-MOI", Buffer.from("Déjà vu à l’été".replace("’", "'"), "latin1"), "text/plain"),
    ]);
  await chat.ask("hello");
  const thread = page.url().split("?")[0]!;
  const panel = page.getByRole("region", { name: "Files of this conversation" });
  const open = (name: string) =>
    page.goto(`${thread}?panel=${encodeURIComponent(`/mnt/user-data/uploads/${name}`)}`);

  await open("contract.docx");
  await expect(panel.getByRole("heading", { name: "Contract" })).toBeVisible();
  await expect(panel.getByRole("complementary", { name: "Header" })).toContainText("Confidential");
  await expect(panel.getByText("In the box")).toHaveCount(1);
  await expect(panel.locator("math mfrac")).toHaveText("ab");
  await expect(panel.locator("del")).toHaveText("100");
  await expect(panel.locator("ins")).toHaveText("250");
  await expect(panel.getByText("Not shown here: Our logo")).toBeVisible();
  const notes = panel.getByRole("region", { name: "Notes and comments" });
  await expect(notes).toContainText("Comment by BertToo much?");
  await expect(notes).toContainText("As of May.");

  await open("stock.xlsx");
  for (const value of [
    "4006381333931",
    "12345678901234567890",
    "01067",
    "26:30:00",
    "=E3+E4 (not calculated)",
  ])
    await expect(panel.getByRole("cell", { name: value, exact: true })).toBeVisible();
  await expect(panel.getByRole("columnheader", { name: "H", exact: true })).toBeVisible();
  await expect(panel.getByRole("row", { name: "900000 stray" })).toBeVisible();
  const comments = panel.getByRole("region", { name: "Comments of this sheet" });
  await expect(comments).toContainText("E2Comment by Bertsure?");

  await open("LISEZ-MOI");
  await expect(panel.getByText("Déjà vu à l'été")).toBeVisible();
});

test("a diagram enlarges, and is saved as PNG and SVG @nightly", async ({ page, chat }) => {
  await chat.ask("markdown");
  const tools = chat.log.getByRole("button", { name: "Save diagram" }).last();
  await tools.scrollIntoViewIfNeeded();
  for (const [kind, begin] of [
    ["PNG", "\x89PNG"],
    ["SVG", "<svg"],
  ] as const) {
    const waiting = page.waitForEvent("download");
    // A menu that is opened while the conversation is loading closes when it has.
    await expect(async () => {
      await tools.click({ timeout: 3000 });
      await page.getByRole("menuitem", { name: `Save as ${kind}` }).click({ timeout: 3000 });
    }).toPass();
    const file = await waiting;
    expect(file.suggestedFilename()).toBe(`diagram.${kind.toLowerCase()}`);
    expect(
      readFileSync(await file.path())
        .subarray(0, 4)
        .toString("latin1"),
    ).toBe(begin);
  }
  const enlarge = chat.log.getByRole("button", { name: "Enlarge" }).last();
  await enlarge.click();
  const large = page.getByRole("dialog", { name: "Diagram" });
  const picture = large.getByRole("img");
  const width = async () => (await picture.boundingBox())!.width;
  const before = await width();
  await large.getByRole("button", { name: "Zoom in" }).click();
  await expect.poll(width).toBeGreaterThan(before);
  await large.getByRole("button", { name: "Close" }).click();
  await expect(large).toBeHidden();
  await expect(enlarge).toBeFocused();
});

test("a report that the sandbox cannot make says what to do, in the page's language @nightly", async ({
  page,
  chat,
}) => {
  await chat.ask("write");
  const panel = page.getByRole("region", { name: "Files of this conversation" });
  await panel.getByRole("button", { name: "More" }).click();
  await page.getByRole("menuitem", { name: "Save as Word" }).click();
  await expect(page.getByText("Couldn’t make report.docx")).toBeVisible();
  await expect(page.getByText(/An administrator can run “deerflow setup”/)).toBeVisible();
});
