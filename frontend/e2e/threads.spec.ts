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
  const title = page.getByRole("textbox", { name: "Title of the chat" });
  await title.fill("About stripes");
  await title.press("Enter");
  await expect(page.getByRole("banner").getByRole("heading", { name: "About stripes" })).toBeVisible();

  await menu().click();
  await page.getByRole("menuitem", { name: "Pin" }).click();
  await expect(sidebar.getByText("Pinned")).toBeVisible();

  await sidebar.getByRole("button", { name: "Actions for “About stripes”" }).click();
  await page.getByRole("menuitem", { name: "Delete" }).click();
  await page
    .getByRole("alertdialog")
    .or(page.getByRole("dialog"))
    .getByRole("button", { name: "Delete" })
    .click();
  await expect(sidebar.getByText("About stripes")).toBeHidden();
  await expect(page).toHaveURL(/\/chats$/);
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
  await expect(page.getByText("This conversation does not exist")).toBeVisible();
  const answer = await page.goto(`${gateway.url}/nowhere`);
  expect(answer?.status()).toBe(404);
  await expect(page.getByText("There is nothing here")).toBeVisible();
});
