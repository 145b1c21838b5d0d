import { mkdirSync, mkdtempSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Page } from "@playwright/test";
import { expect, test as base } from "./fixtures";
import type { Model } from "./server";

/** `files` makes files in a directory of the test's own, as long as is wanted, and gives their paths. */
const test = base.extend<{ files: (sizes: Record<string, number>) => string[] }>({
  files: async ({}, use) => {
    const root = mkdtempSync(join(tmpdir(), "deerflow-files-"));
    await use((sizes) =>
      Object.entries(sizes).map(([name, size]) => {
        const path = join(root, name);
        writeFileSync(path, "");
        truncateSync(path, size); // sparse: takes no room
        return path;
      }),
    );
    rmSync(root, { recursive: true, force: true });
  },
});

const MB = 1 << 20;
const attach = (page: Page, files: string[]) => page.getByLabel("Add files").last().setInputFiles(files);
const attached = (page: Page) => page.getByRole("list", { name: "Attached files" }).getByRole("listitem");

test("files that are too large or too many are refused with the reason, and the rest goes along", async ({
  page,
  chat,
  files,
}) => {
  await attach(page, files({ "note-00.txt": 10, "film.mp4": 101 * MB }));
  await expect(page.getByText("film.mp4: files can be up to 100 MB.")).toBeVisible();
  await expect(attached(page)).toHaveText(/note-00\.txt/);

  const more = Array.from({ length: 20 }, (_, i) => `note-${String(i + 1).padStart(2, "0")}.txt`);
  await attach(page, files(Object.fromEntries(more.map((name) => [name, 10]))));
  await expect(page.getByText("19 of 20 files added: the limit is 20 per message.")).toBeVisible();
  await expect(attached(page)).toHaveCount(20);

  await chat.ask('bash echo "$(ls /mnt/user-data/uploads | wc -l) arrived"');
  await page
    .getByRole("button", { name: /Run the command/ })
    .first()
    .click();
  await chat.sees("20 arrived");
});

/** A folder with others in it, and what is hidden. */
function holiday(beside: string) {
  const folder = join(beside, "../holiday");
  for (const inner of ["", "days/first", ".git", "nothing"])
    mkdirSync(join(folder, inner), { recursive: true });
  for (const name of ["plan.txt", "days/first/morning.txt", "days/b.txt", ".hidden", ".git/config"])
    writeFileSync(join(folder, name), name);
  return folder;
}
const FLAT = ["holiday__plan.txt", "holiday__days__b.txt", "holiday__days__first__morning.txt"];

test("files and folders are dropped anywhere on the page", async ({ page, chat, files }) => {
  const [table] = files({ "dropped.csv": 10 });
  const folder = holiday(table!);
  const empty = join(folder, "nothing");
  await chat.field.waitFor();
  const browser = await page.context().newCDPSession(page);
  const drag = (type: "dragEnter" | "dragOver" | "drop") =>
    browser.send("Input.dispatchDragEvent", {
      type,
      x: 700,
      y: 20,
      data: { items: [], files: [table!, folder, empty], dragOperationsMask: 1 },
    });
  await drag("dragEnter");
  await drag("dragOver");
  await expect(page.getByText("Drop files or folders here")).toBeVisible();
  await drag("drop");
  await expect(page.getByText("Drop files or folders here")).toBeHidden();
  await expect(page.getByText("nothing: nothing to send in this folder.")).toBeVisible();
  await expect(attached(page)).toHaveText(["dropped.csv", ...FLAT].map((name) => new RegExp(name)));
});

test("a folder is picked, and goes along as far as the message has room", async ({ page, chat, files }) => {
  const [beside] = files({ beside: 1 });
  const folder = holiday(beside!);
  await chat.field.fill("/fol");
  const choosing = page.waitForEvent("filechooser");
  await chat.field.press("Enter");
  await (await choosing).setFiles(folder);
  await expect(attached(page)).toHaveText(FLAT.map((name) => new RegExp(name)));
  await chat.field.fill("bash cat /mnt/user-data/uploads/holiday__days__first__morning.txt");
  await chat.field.press("Enter");
  await chat.sees("The command has ended.");
  await page
    .getByRole("button", { name: /Run the command/ })
    .first()
    .click();
  await chat.sees("days/first/morning.txt");

  mkdirSync(join(folder, "many"));
  for (let number = 0; number < 1200; number += 1) writeFileSync(join(folder, "many", `${number}.txt`), "");
  await page.getByLabel("Add a folder").last().setInputFiles(folder);
  await expect(page.getByText("20 of 1203 files added: the limit is 20 per message.")).toBeVisible();
  await expect(attached(page)).toHaveCount(20);
});

test.describe("the clipboard", () => {
  test.use({ permissions: ["clipboard-read", "clipboard-write"] });

  test("a picture that is pasted goes along", async ({ page, chat }) => {
    await chat.field.focus();
    await page.evaluate(async () => {
      const canvas = new OffscreenCanvas(40, 20);
      canvas.getContext("2d")!.fillRect(0, 0, 20, 20);
      await navigator.clipboard.write([new ClipboardItem({ "image/png": canvas.convertToBlob() })]);
    });
    await page.keyboard.press("ControlOrMeta+v");
    await expect(attached(page)).toHaveText(/image\.png/);
    await expect(attached(page).locator("img")).toHaveJSProperty("naturalWidth", 40);
    await chat.ask("hello picture");
    const sent = chat.log.getByRole("button", { name: /image\.png/ });
    await expect(sent.locator("img")).toHaveJSProperty("naturalWidth", 40);
  });

  test("a long text that is pasted becomes a file, or goes into the message", async ({ page, chat }) => {
    await chat.field.fill("bash wc -c /mnt/user-data/uploads/*");
    await page.evaluate(() => navigator.clipboard.writeText("word ".repeat(1800)));
    await page.keyboard.press("ControlOrMeta+v");
    await expect(page.getByText("9,000 characters of text were attached as a file.")).toBeVisible();
    await page.getByRole("button", { name: "Put it into the message instead" }).click();
    await expect(chat.field).toHaveValue(/word word/);
    await expect(attached(page)).toHaveCount(0);

    await chat.field.fill("");
    await page.keyboard.press("ControlOrMeta+v");
    await expect(attached(page)).toHaveText(/pasted-text.*9 kB/);
    await expect(attached(page).getByRole("progressbar")).toHaveCount(0);
    await page.waitForFunction(() =>
      Object.keys(localStorage).some((name) => localStorage.getItem(name)?.includes("pasted-text")),
    );
    await page.reload();
    await page.getByRole("button", { name: "Put it into the message instead" }).click();
    await expect(chat.field).toHaveValue(/word word/);
    await expect(attached(page)).toHaveCount(0);

    await chat.field.fill("bash wc -c /mnt/user-data/uploads/*");
    await page.keyboard.press("ControlOrMeta+v");
    await expect(chat.field).toHaveValue("bash wc -c /mnt/user-data/uploads/*");
    await expect(attached(page)).toHaveText(/pasted-text\.txt/);
    await chat.field.press("Enter");
    await chat.sees("The command has ended.");
    await page
      .getByRole("button", { name: /Run the command/ })
      .first()
      .click();
    await chat.sees(/9000 \/mnt\/user-data\/uploads\/pasted-text\.txt/);
  });
});

test("the page is painted, and written in, before its code has come", async ({ page, chat }) => {
  let come = () => {};
  const here = new Promise<void>((resolve) => (come = resolve));
  await page.route("**/*.js", (route) => here.then(() => route.continue()));
  await page.reload({ waitUntil: "commit" });
  await expect(page.getByRole("status", { name: "DeerFlow" })).toBeVisible();
  await page.getByRole("textbox", { name: "Write while the page loads" }).click();
  await page.keyboard.type("hello, half a ence");
  for (let letter = 0; letter < "ence".length; letter += 1) await page.keyboard.press("ArrowLeft");
  come();
  await expect(chat.field).toHaveValue("hello, half a ence");
  await page.keyboard.type("sent");
  await expect(chat.field).toHaveValue("hello, half a sentence");
  await chat.field.press("Enter");
  await chat.sees("hello, half a sentence");
  await expect(chat.field).toHaveValue("");
});

test("one's own messages are recalled with the arrow keys", async ({ chat }) => {
  await chat.ask("hello one");
  await chat.ask("hello two");
  await chat.field.press("ArrowUp");
  await expect(chat.field).toHaveValue("hello two");
  await chat.field.press("ArrowUp");
  await expect(chat.field).toHaveValue("hello one");
  await chat.field.press("ArrowDown");
  await expect(chat.field).toHaveValue("hello two");
  await chat.field.press("ArrowDown");
  await expect(chat.field).toHaveValue("");
  await chat.field.fill("a new thought");
  await chat.field.press("ArrowUp");
  await expect(chat.field).toHaveValue("a new thought");
});

test("commands are found and run by keyboard alone", async ({ page, chat }) => {
  const menu = page.getByRole("listbox", { name: "Commands" });
  const chosen = menu.getByRole("option", { selected: true });
  await chat.field.pressSequentially("/");
  await expect(chosen).toHaveText(/^\/model/);
  await expect(menu.getByRole("option").last()).toHaveText(/^\/web-artifacts/); // skills come after commands
  await chat.field.press("ArrowDown");
  await expect(chosen).toHaveText(/^\/mode(?!l)/);
  await chat.field.press("ArrowUp");
  await chat.field.press("ArrowUp");
  await expect(chosen).toHaveText(/^\/web-artifacts/);
  await chat.field.press("Escape");
  await expect(menu).toBeHidden();
  await expect(chat.field).toHaveValue("/");

  await chat.field.pressSequentially("he");
  await expect(chosen).toHaveText(/^\/help/);
  await chat.field.press("Enter");
  await expect(page.getByRole("dialog", { name: "Keyboard shortcuts" })).toBeVisible();
  await page.keyboard.press("Escape");
  await expect(chat.field).toHaveValue("");
  for (const [command, picker] of [
    ["/model", page.getByRole("dialog")],
    ["/mode", page.getByRole("menu")],
  ] as const) {
    await chat.field.pressSequentially(command);
    await expect(chosen).toHaveText(new RegExp(`^${command}(?!l)`));
    await chat.field.press("Enter");
    await page.waitForTimeout(300); // it must not close again by itself
    await expect(picker).toBeVisible();
    await page.keyboard.press("Escape");
    await expect(picker).toBeHidden();
    await chat.field.focus();
  }
  await chat.field.pressSequentially("/set");
  await chat.field.press("Enter");
  await expect(page).toHaveURL(/\/settings/);
});

test("Enter that ends the choice of a word does not send", async ({ page, chat }) => {
  await chat.field.focus();
  const browser = await page.context().newCDPSession(page);
  await browser.send("Input.imeSetComposition", { text: "nihao", selectionStart: 5, selectionEnd: 5 });
  await expect(chat.field).toHaveValue("nihao");
  const enter = { key: "Enter", code: "Enter", windowsVirtualKeyCode: 229 };
  await browser.send("Input.dispatchKeyEvent", { type: "rawKeyDown", ...enter });
  await browser.send("Input.insertText", { text: "你好" });
  await browser.send("Input.dispatchKeyEvent", { type: "keyUp", ...enter });
  await expect(chat.field).toHaveValue("你好");
  await expect(chat.log).toBeHidden();
  await chat.field.press("Enter");
  await chat.sees("你好");
  await expect(chat.field).toHaveValue("");
});

/** What the provider was asked last for a run: small jobs beside it come without tools. */
async function asked(model: Model): Promise<{ model: string; tools: { function: { name: string } }[] }> {
  const get = async (path: string) => (await fetch(new URL(path, model.url))).json();
  const log = (await get("/log")) as { n: number; tools_bytes: number }[];
  const run = log.findLast(({ tools_bytes }) => tools_bytes > 1000);
  return (await get(`/dump?n=${run?.n}`)) as Awaited<ReturnType<typeof asked>>;
}

test("the model and the way to work that are picked count for what is sent next", async ({
  page,
  chat,
  model,
}) => {
  const plans = async () => (await asked(model)).tools.some((tool) => tool.function.name === "write_todos");
  await chat.ask("hello");
  expect((await asked(model)).model).toBe("scripted");
  expect(await plans()).toBe(true);

  await page.getByRole("button", { name: /^Mode:/ }).click();
  await page.getByRole("menuitemradio", { name: /^Flash/ }).click();
  await chat.ask("hello flash");
  expect(await plans()).toBe(false);

  await page.getByRole("button", { name: /^Model/ }).click();
  await page.getByRole("combobox", { name: "Choose a model" }).fill("mini");
  await page.keyboard.press("Enter");
  await chat.ask("hello mini");
  expect((await asked(model)).model).toBe("scripted-mini");

  await page.reload();
  await expect(page.getByRole("button", { name: "Model: Scripted Mini" })).toBeVisible();
  await expect(page.getByRole("button", { name: "Mode: Flash" })).toBeVisible();
});
