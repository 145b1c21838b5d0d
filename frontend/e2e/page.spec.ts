import type { Browser, Locator, Page } from "@playwright/test";
import { threadOf } from "./chat";
import { expect, test } from "./fixtures";
import { Gateway } from "./server";

const WIDE = `| ${Array.from({ length: 14 }, (_, i) => `Column number ${i + 1}`).join(" | ")} |
|${"---|".repeat(14)}
| ${Array.from({ length: 14 }, (_, i) => `value ${i + 1}`).join(" | ")} |`;
const HEBREW = `## סיכום

| ${["שם הפריט בקטלוג", "API", "כמות במלאי", "מחיר ליחידה", "Server", "הערות נוספות", "תאריך עדכון"].join(" | ")} |
|${"---|".repeat(7)}
| ${Array.from({ length: 7 }, (_, i) => `ערך של הפריט מספר ${i + 1}`).join(" | ")} |

- Docker
- שרת המידע של החברה`;

const phone = { width: 390, height: 844 };

for (const viewport of [phone, { width: 1360, height: 860 }])
  test(
    `a wide table is read by keyboard and shows that there is more, ${viewport.width} wide`,
    { tag: viewport === phone ? "@nightly" : [] },
    async ({ page, gateway }) => {
      await page.setViewportSize(viewport);
      await page.goto(
        `/chats/${await threadOf(page, gateway.url, "table", `${WIDE}\n\n| a |\n|---|\n| b |`)}`,
      );
      const box = page.getByRole("region", { name: "Table" });
      await expect(box).toHaveCount(1); // the small one is no stop on the way
      await expect(box).toHaveAttribute("data-after", "true");
      await box.focus();
      await page.keyboard.press("End");
      for (let i = 0; i < 60; i += 1) await page.keyboard.press("ArrowRight");
      await expect(page.getByRole("cell", { name: "value 14" })).toBeInViewport();
      await expect(box).toHaveAttribute("data-before", "true");
    },
  );

test("a table in Hebrew begins at the right, all of it", async ({ page, gateway }) => {
  await page.setViewportSize(phone);
  await page.goto(`/chats/${await threadOf(page, gateway.url, "טבלה", HEBREW)}`);
  const first = page.getByRole("columnheader", { name: "שם הפריט בקטלוג" });
  const second = page.getByRole("columnheader", { name: "API" });
  await expect(first).toBeInViewport();
  const [right, left] = [await first.boundingBox(), await second.boundingBox()];
  expect(right!.x).toBeGreaterThan(left!.x);
  await expect(page.getByRole("region", { name: "Table" })).toHaveAttribute("data-after", "true");
  const items = await page
    .locator(".prose-chat li")
    .evaluateAll((all) => all.map((one) => getComputedStyle(one).direction));
  expect(items).toEqual(["rtl", "rtl"]);
});

/** Selects a part and asks about it; what is still being drawn takes a selection with it. */
async function askAbout(page: Page, part: Locator) {
  const ask = page.getByRole("button", { name: "Ask about this" });
  await expect(async () => {
    await part.evaluate((element) => getSelection()!.selectAllChildren(element));
    await ask.click({ timeout: 1000 });
  }).toPass();
}

test("a passage of an answer, and one of a file, is asked about with its place", async ({ page, chat }) => {
  await chat.ask("write");
  await askAbout(page, chat.log.getByText("The report is ready").last());
  await expect(chat.field).toHaveValue(/^> Your answer to “write”:\n> The report is ready.*\n\n$/);
  await expect(chat.field).toBeFocused();
  await chat.field.fill("");
  await chat.log
    .getByRole("button", { name: /report\.md/ })
    .last()
    .click();
  const panel = page.getByRole("region", { name: "Files of this conversation" });
  await askAbout(page, panel.locator(".prose-chat p").last());
  await expect(chat.field).toHaveValue(/^> \/mnt\/user-data\/outputs\/report\.md, “.+”:\n> .+\n\n$/s);
});

test("on a phone a passage of a file is asked about in the chat", async ({ browser, gateway, session }) => {
  const context = await browser.newContext({ viewport: phone, isMobile: true, hasTouch: true });
  await session.enter(context);
  const page = await context.newPage();
  await page.goto(`${gateway.url}/chats`);
  await page.getByRole("textbox", { name: "Message", exact: true }).fill("write");
  await page.getByRole("button", { name: "Send", exact: true }).tap();
  await page.getByRole("log").getByRole("button", { name: "Open report.md" }).tap();
  const panel = page.getByRole("region", { name: "Files of this conversation" });
  await panel
    .locator(".prose-chat p")
    .last()
    .evaluate((element) => getSelection()!.selectAllChildren(element));
  await page.getByRole("button", { name: "Ask about this" }).tap();
  await expect(panel).toBeHidden();
  await expect(page.getByRole("textbox", { name: "Message", exact: true })).toHaveValue(/report\.md/);
  // and a new chat is one tap away
  await page.getByRole("banner").getByRole("button", { name: "New chat" }).tap();
  await expect(page).toHaveURL(/\/chats$/);
  await context.close();
});

test("suggestions are one row on a phone", { tag: "@nightly" }, async ({ page, chat }) => {
  await page.setViewportSize(phone);
  await chat.ask("hello");
  const row = page.getByRole("group", { name: "Suggestions" });
  await row.waitFor();
  const tops = await row
    .getByRole("button", { name: /[a-z]{4}/ })
    .evaluateAll((all) =>
      all.filter((one) => one.textContent).map((one) => Math.round(one.getBoundingClientRect().top)),
    );
  expect(new Set(tops).size).toBe(1);
});

test(
  "beside a panel on a small screen the sidebar folds, and opens if wanted",
  { tag: "@nightly" },
  async ({ page, chat }) => {
    await page.setViewportSize({ width: 1024, height: 768 });
    await chat.ask("hello");
    const list = page.getByRole("navigation", { name: "Chats" });
    await expect(list.locator("[data-thread-row]").first()).toBeVisible();
    await page.getByRole("button", { name: "Files", exact: true }).click();
    await expect(list.locator("[data-thread-row]")).toHaveCount(0);
    await list.getByRole("button", { name: "Show sidebar" }).click();
    await expect(list.locator("[data-thread-row]").first()).toBeVisible();
    await page.getByRole("button", { name: "Close files" }).click();
    await expect(list.locator("[data-thread-row]").first()).toBeVisible();
  },
);

test("the palette leads to everything by the names that people use", async ({ page, chat }) => {
  await chat.ask("hello");
  const first = page.getByRole("dialog").getByRole("option").first();
  await page.keyboard.press("ControlOrMeta+k");
  const field = page.getByPlaceholder("Search chats or type a command");
  for (const [words, leads] of [
    ["custom instructions", "Instructions"],
    ["personalization", "Memory"],
    ["profile", "Account"],
    ["sign out", "Sign out"],
    ["docs", "Documentation"],
    ["temporary", "Temporary chat"],
    ["share", "Copy link to this chat"],
    ["upload", "Attach files"],
    ["archived", "Archived chats"],
    ["rename", "Rename this chat"],
    ["delete", "Delete this chat"],
    ["export", "Download this chat"],
    ["web search", "Models"],
    ["api key", "Models"],
    ["connect", "Models"],
    ["people", "People"],
    ["tokens", "API tokens"],
    ["models", "Models"],
    ["account", "Account"],
  ] as const) {
    await field.fill(words);
    await expect(page.getByRole("dialog").getByRole("option", { name: leads }).first(), words).toBeVisible();
    if (words === "models" || words === "account") await expect(first).toHaveText(leads);
  }
  await field.fill("rename");
  await page.keyboard.press("Enter");
  await page.getByPlaceholder("New name").fill("Quarterly numbers");
  await page.keyboard.press("Enter");
  await expect(page.getByRole("banner").getByText("Quarterly numbers")).toBeVisible();
  await page.keyboard.press("ControlOrMeta+k");
  await field.fill("quarterly numbers");
  await expect(first).toHaveText("Quarterly numbers");
  await page.keyboard.press("Escape");
});

test("Ctrl+K is heard before the page has its data", async ({ page }) => {
  await page.route("**/api/v1/auth/me", async (route) => {
    await new Promise((done) => setTimeout(done, 2500));
    await route.continue();
  });
  await page.goto("/chats", { waitUntil: "load" });
  await page.getByRole("textbox", { name: "Write while the page loads" }).waitFor();
  await page.waitForTimeout(500);
  await page.keyboard.press("ControlOrMeta+k");
  await expect(page.getByPlaceholder("Search chats or type a command")).toBeVisible();
});

test("notices leave the head of the page free, and a failure that was read has no mark any more", async ({
  page,
  chat,
}) => {
  await chat.ask("error 401");
  const row = page.getByRole("navigation", { name: "Chats" }).locator("[data-thread-row]").first();
  await expect(row).toContainText("error 401");
  await expect(row.getByRole("img")).toHaveCount(0); // it works no more, and one looks at it
  await chat.fresh();
  await expect(row.getByRole("img", { name: "Failed" })).toHaveCount(0);
  await row.click();
  await expect(chat.field).toBeFocused(); // the conversation is there and takes the focus no more
  await row.focus();
  await page.keyboard.press("Delete");
  await page.getByRole("button", { name: "Undo" }).waitFor();
  const notice = await page.getByRole("button", { name: "Undo" }).locator("..").boundingBox();
  const head = await page.getByRole("banner").boundingBox();
  expect(notice!.y).toBeGreaterThanOrEqual(head!.y + head!.height);
});

/** What the browser complains of while somebody who is not signed in comes to `url`. */
async function complaints(browser: Browser, url: string): Promise<string[]> {
  const page = await browser.newPage();
  const said: string[] = [];
  page.on("console", (message) => message.type() === "error" && said.push(message.text()));
  await page.goto(url);
  await page.getByLabel("Email").waitFor();
  await page.waitForTimeout(500);
  await page.close();
  return said;
}

test("the console of the first visitor is clean", async ({ browser, model }) => {
  const fresh = await new Gateway(model.url, ["--no-account"]).start();
  expect(await complaints(browser, fresh.url)).toEqual([]);
  await fresh.stop();
});

test("the console of a visitor who is signed out is clean", async ({ browser, gateway }) => {
  expect(await complaints(browser, gateway.url)).toEqual([]);
});
