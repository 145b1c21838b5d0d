import type { Page } from "@playwright/test";
import type { Chat } from "./chat";
import { expect, test } from "./fixtures";

test("conversations are found by what was said, renamed, pinned and deleted", async ({ page, chat }) => {
  const word = `zebra${Date.now()}`;
  await chat.ask(`tell me about ${word}`);
  const sidebar = page
    .getByRole("navigation", { name: "Chats" })
    .or(page.getByRole("complementary", { name: "Chats" }))
    .first();
  const search = page.getByRole("searchbox", { name: "Search chats" });
  await search.fill(word);
  await expect(sidebar.getByText(word).first()).toBeVisible();
  await search.fill("");

  const menu = () => sidebar.getByRole("button", { name: /Actions for/ }).first();
  await menu().click();
  await page.getByRole("menuitem", { name: "Rename" }).click();
  const title = page.getByRole("textbox", { name: "Chat title" });
  await title.fill("About stripes");
  await title.press("Enter");
  await expect(page.getByRole("banner").getByRole("heading", { name: "About stripes" })).toBeVisible();

  await menu().click();
  await page.getByRole("menuitem", { name: "Pin" }).click();
  await expect(sidebar.getByText("Pinned")).toBeVisible();

  await sidebar.getByRole("button", { name: "Actions for “About stripes”" }).click();
  await page.getByRole("menuitem", { name: "Delete" }).click();
  await expect(sidebar.getByText("About stripes")).toBeHidden();
  await expect(page).toHaveURL(/\/chats$/);
});

/** The server's own word. */
const isThere = async (page: Page, path: string) =>
  (await page.request.get(`/api${path.replace("/chats", "/threads")}`)).status() === 200;

async function threeChats(page: Page, chat: Chat, word: string): Promise<string[]> {
  const paths: string[] = [];
  for (const name of ["one", "two", "three"]) {
    if (paths.length) await chat.fresh();
    await chat.ask(`${word} ${name}`);
    paths.push(new URL(page.url()).pathname);
  }
  return paths;
}

test("several conversations are chosen by keyboard and deleted, which can be undone", async ({
  page,
  chat,
}) => {
  const [one, two, three] = (await threeChats(page, chat, "hello")) as [string, string, string];
  const list = page.getByRole("navigation", { name: "Chats" });
  await list.locator(`a[href="${three}"]`).focus();
  await page.keyboard.press("Space");
  await expect(list.getByRole("checkbox", { checked: true })).toBeFocused();
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("Space");
  await expect(list.getByRole("toolbar", { name: "2 selected" })).toBeVisible();
  await page.keyboard.press("Delete");
  await expect(list.locator(`a[href="${two}"], a[href="${three}"]`)).toHaveCount(0);
  await expect(list.locator(`a[href="${one}"]`)).toBeVisible();
  await expect(page).toHaveURL(/\/chats$/); // it stood in the last one
  await page.getByRole("button", { name: "Undo" }).click();
  await expect(page).toHaveURL(new RegExp(three));
  await page.keyboard.press("Escape");
  await page.reload();
  await expect(list.locator(`a[href="${two}"]`)).toBeVisible();
  await chat.sees("hello three");

  await list.locator(`a[href="${two}"]`).focus();
  await page.keyboard.press("Delete");
  await expect(list.locator(`a[href="${two}"]`)).toHaveCount(0);
  expect(await isThere(page, two)).toBe(true);
  await page.reload(); // a person who leaves has no more use for "Undo"
  await expect.poll(() => isThere(page, two)).toBe(false);
  await expect(list.locator(`a[href="${one}"]`)).toBeVisible();
  await expect(list.locator(`a[href="${two}"]`)).toHaveCount(0);
});

test("archived conversations leave the list, are found, and come back", async ({ page, chat }) => {
  const [one] = (await threeChats(page, chat, "hello archive")) as [string, string, string];
  const list = page.getByRole("navigation", { name: "Chats" });
  const entry = list.locator(`a[href="${one}"]`);
  await entry.locator("..").hover();
  await entry.locator("..").getByRole("button").click();
  await page.getByRole("menuitem", { name: "Archive" }).click();
  await expect(entry).toHaveCount(0);
  await page.getByRole("button", { name: "Undo" }).click();
  await expect(entry).toBeVisible();

  const above = await list.locator("[data-thread-row]").evaluateAll((rows, path) => {
    const paths = rows.map((row) => row.getAttribute("href"));
    return paths[paths.indexOf(path) - 1];
  }, one);
  await entry.focus();
  await page.keyboard.press("Space");
  await expect(list.getByRole("checkbox", { checked: true })).toBeFocused();
  await page.keyboard.press("ArrowUp");
  await page.keyboard.press("Space");
  await expect(list.getByRole("toolbar", { name: "2 selected" })).toBeVisible();
  await list.getByRole("button", { name: "Archive" }).click();
  await expect(entry).toHaveCount(0);
  await page.reload();
  await expect(list.locator("[data-thread-row]").first()).toBeVisible();
  await expect(entry).toHaveCount(0);
  await list.getByRole("button", { name: /@/ }).click();
  await page.getByRole("menuitem", { name: "Archived chats" }).click();
  await expect(list.locator(`a[href="${above}"]`)).toBeVisible();
  await entry.locator("..").hover();
  await entry.locator("..").getByRole("button").click();
  await page.getByRole("menuitem", { name: "Move back to the list" }).click();
  await expect(entry).toHaveCount(0);
  await list.getByRole("button", { name: "Archived chats" }).click();
  await expect(entry).toBeVisible();
  await expect(list.locator(`a[href="${above}"]`)).toHaveCount(0);
});

test("a title that is made while the page still waits for the one before is shown", async ({
  page,
  chat,
}) => {
  let made = () => {};
  const title = new Promise<void>((done) => (made = done));
  let asked = false;
  await page.route("**/api/threads/search", async (route) => {
    if (asked || !("ids" in route.request().postDataJSON())) return route.continue();
    asked = true;
    const response = await route.fetch();
    await title;
    await route.fulfill({ response });
  });
  await chat.ask("hello title");
  const entry = page.getByRole("navigation", { name: "Chats" }).getByRole("link", { name: /A scripted/ });
  await expect(entry.and(page.locator("[aria-current=page]"))).toBeVisible();
  made();
  await page.unrouteAll({ behavior: "wait" });
  await expect(page.getByRole("banner").getByRole("heading")).toHaveText("A scripted conversation");
});

test("conversations are exported", async ({ page, chat }) => {
  await chat.ask("write");
  for (const [item, name] of [
    ["Markdown", /\.md$/],
    ["JSON", /\.json$/],
    ["ZIP with all files", /\.zip$/],
  ] as const) {
    await page
      .getByRole("button", { name: /Actions for/ })
      .first()
      .click();
    await page.getByRole("menuitem", { name: "Export" }).hover();
    const waiting = page.waitForEvent("download");
    await page.getByRole("menuitem", { name: item }).click();
    expect((await waiting).suggestedFilename()).toMatch(name);
    await expect(page.getByRole("menu")).toHaveCount(0);
  }
});

test("going from one conversation to another asks the server for no page", async ({ page, chat }) => {
  await chat.ask("hello one");
  const one = new URL(page.url()).pathname;
  await chat.fresh();
  await chat.ask("hello two");
  const pages: string[] = [];
  page.on("request", (request) => request.resourceType() === "document" && pages.push(request.url()));
  await page.locator(`a[href="${one}"]`).click();
  await chat.sees("hello one");
  await page.goBack();
  await chat.sees("hello two");
  expect(pages).toEqual([]);
});

test("drafts stay with their conversation", async ({ page, chat }) => {
  await chat.ask("hello draft");
  await chat.field.fill("half a thought");
  await page.waitForTimeout(500);
  await page.reload();
  await expect(chat.field).toHaveValue("half a thought");
  await chat.fresh();
  await expect(chat.field).toHaveValue("");
  await page.goBack();
  await expect(chat.field).toHaveValue("half a thought");
});

test("the palette opens settings and finds conversations by keyboard alone", async ({ page, chat }) => {
  await chat.field.waitFor();
  await page.keyboard.press("ControlOrMeta+k");
  await page.getByRole("combobox").fill("appearance");
  await expect(page.getByRole("option").first()).toBeVisible();
  await page.keyboard.press("Escape");
  await expect(page.getByRole("combobox")).toBeHidden();
  await page.keyboard.press("ControlOrMeta+/");
  await expect(page.getByRole("dialog", { name: "Keyboard shortcuts" })).toBeVisible();
});

test("Escape gives the focus back to where it was before the palette", async ({ page, chat }) => {
  await chat.field.fill("half a thought");
  for (const key of ["ControlOrMeta+k", "ControlOrMeta+/"]) {
    await page.keyboard.press(key);
    await expect(page.getByRole("dialog")).toBeVisible();
    await page.keyboard.press("Escape");
    await expect(page.getByRole("dialog")).toBeHidden();
    await expect(chat.field).toBeFocused();
  }
});

test("an unknown conversation and an unknown page say so", async ({ page, gateway }) => {
  await page.goto(`${gateway.url}/chats/00000000-0000-4000-8000-000000000000`);
  await expect(page.getByText("This chat doesn’t exist")).toBeVisible();
  const answer = await page.goto(`${gateway.url}/nowhere`);
  expect(answer?.status()).toBe(404);
  await expect(page.getByText("Page not found")).toBeVisible();
});
