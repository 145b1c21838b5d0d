import type { Page } from "@playwright/test";
import { expect, signIn, test } from "./fixtures";
import { allowNotices, look, notices } from "./looking";

/** The gateway asks before files are written and commands run. */
test.use({ flags: ["--guardrail"] });

const badge = (page: Page) => page.getByRole("button", { name: /^Waiting for you: \d+$/ });
const inbox = (page: Page) => page.getByRole("dialog", { name: "Waiting for you" });
const decisions = (page: Page) => inbox(page).getByRole("group", { name: /decision|^DeerFlow wants to/ });

/** The list is empty again, so that the next test counts from zero. */
test.afterEach(async ({ page, gateway }) => {
  const csrf = (await page.context().cookies()).find(({ name }) => name === "csrf_token")?.value ?? "";
  const headers = { "X-CSRF-Token": csrf, Origin: gateway.url };
  const found = await page.request.get(`${gateway.url}/api/approvals/waiting`);
  const { threads } = (await found.json()) as { threads: { thread_id: string }[] };
  for (const { thread_id: id } of threads)
    await page.request.delete(`${gateway.url}/api/threads/${id}/waiting`, { headers });
});

test("what waits in all chats is decided in one place", async ({ page, chat }) => {
  await chat.say("bash echo one > one.txt; cat one.txt");
  await expect(chat.log.getByRole("alertdialog")).toHaveCount(1);
  await expect(badge(page)).toHaveText(/1$/);
  await chat.fresh();
  await chat.say("ask");
  await chat.sees("Which format should the report have?");
  await expect(badge(page)).toHaveText(/2$/);
  await chat.fresh();
  await chat.say("site");
  await expect(chat.log.getByRole("alertdialog")).toHaveCount(4);
  const thread = page.url();
  await chat.fresh();
  await expect(badge(page)).toHaveText(/3$/);

  await badge(page).click();
  await expect(inbox(page).getByRole("article")).toHaveCount(3);
  await expect(inbox(page).getByText("3 chats are waiting for you")).toBeVisible();

  // Each call of a chat by itself; those left stay, half a sentence included, while the others run.
  const site = inbox(page).getByRole("article").first();
  const cards = site.getByRole("group", { name: /^DeerFlow wants to/ });
  const card = (holds: string) => cards.filter({ hasText: holds });
  await expect(card("Write index.html").getByText("New file")).toBeVisible();
  await card("Write style.css").getByRole("button", { name: "Don’t allow" }).click();
  await card("Write style.css").getByRole("textbox").fill("No colours, please");
  await card("Write app.js").getByRole("button", { name: "Allow", exact: true }).click();
  await expect(cards).toHaveCount(3);
  await expect(card("Write style.css").getByRole("textbox")).toHaveValue("No colours, please");
  await card("Write style.css").getByRole("button", { name: "Don’t allow" }).click();
  await expect(cards).toHaveCount(2);
  await page.route("**/runs", async (route) => {
    if (route.request().method() === "POST") await new Promise((later) => setTimeout(later, 1000));
    await route.continue();
  });
  await card("Write index.html").getByRole("button", { name: "Allow", exact: true }).click();
  await card("Write second.html").getByRole("button", { name: "In this chat" }).click(); // both on their way
  await expect(inbox(page).getByRole("article")).toHaveCount(2);

  const question = inbox(page).getByRole("article").filter({ hasText: "Which format" });
  await question.getByRole("button", { name: /PDF/ }).click();
  await expect(question).toHaveCount(0);
  await decisions(page).getByRole("button", { name: "Allow", exact: true }).click();
  await expect(inbox(page).getByText("Nothing is waiting for you")).toBeVisible();
  await page.keyboard.press("Escape");
  await expect(badge(page)).toBeHidden();

  await page.goto(thread);
  await chat.sees("The site is ready");
  await expect(chat.log.getByRole("button", { name: /Wrote 3 files.*1 not run/ })).toBeVisible();
});

test("an entry leads to its chat, or is put off until it asks again", async ({ page, chat }) => {
  await chat.say("bash echo two");
  await expect(chat.log.getByRole("alertdialog")).toHaveCount(1);
  const thread = page.url();
  await chat.fresh();
  await badge(page).click();
  await inbox(page).getByRole("article").getByRole("link").click();
  await expect(page).toHaveURL(thread);
  await expect(chat.log.getByRole("alertdialog")).toHaveCount(1);
  await badge(page).click();
  await inbox(page)
    .getByRole("button", { name: /^Decide later/ })
    .click();
  await expect(inbox(page).getByText("Nothing is waiting for you")).toBeVisible();
  await page.keyboard.press("Escape");
  await expect(badge(page)).toBeHidden();
  await chat.log.getByRole("button", { name: "Allow", exact: true }).click();
  await chat.sees("The command has ended.");
});

test("the settings have the badge, too @nightly", async ({ page, chat, gateway }) => {
  await chat.say("bash echo settings");
  await expect(chat.log.getByRole("alertdialog")).toHaveCount(1);
  const thread = page.url();
  await page.goto(`${gateway.url}/settings/usage`);
  await badge(page).click();
  await decisions(page).getByRole("button", { name: "Allow", exact: true }).click();
  await expect(inbox(page).getByText("Nothing is waiting for you")).toBeVisible();
  await page.goto(thread);
  await chat.sees("The command has ended.");
});

test("from the badge by keyboard alone, and the focus comes back", async ({ page, chat }) => {
  await chat.say("bash echo three");
  await expect(chat.log.getByRole("alertdialog")).toHaveCount(1);
  await chat.fresh();
  await badge(page).focus();
  await page.keyboard.press("Enter");
  await expect(decisions(page)).toHaveCount(1);
  const allow = decisions(page).getByRole("button", { name: "Allow", exact: true });
  for (let i = 0; i < 12 && !(await allow.evaluate((node) => node === document.activeElement)); i += 1)
    await page.keyboard.press("Tab");
  await expect(allow).toBeFocused();
  await page.keyboard.press("Enter");
  await expect(inbox(page).getByText("Nothing is waiting for you")).toBeVisible();
  await expect(inbox(page).getByRole("status")).toHaveText("Sent. Nothing else is waiting for you.");
  await expect(inbox(page).getByRole("heading", { name: "Waiting for you" })).toBeFocused();
  await page.keyboard.press("Escape");
  await expect(inbox(page)).toBeHidden();
});

test("on a phone a decision takes two taps @nightly", async ({ browser, gateway, page, chat }) => {
  await chat.say("bash echo phone");
  await expect(chat.log.getByRole("alertdialog")).toHaveCount(1);
  const context = await browser.newContext({
    viewport: { width: 390, height: 844 },
    isMobile: true,
    hasTouch: true,
  });
  await signIn(context, gateway.url);
  const phone = await context.newPage();
  await phone.goto(`${gateway.url}/chats`);
  await badge(phone).tap();
  await decisions(phone).getByRole("button", { name: "Allow", exact: true }).tap();
  await expect(inbox(phone).getByText("Nothing is waiting for you")).toBeVisible();
  await chat.sees("The command has ended.");
  await expect(badge(page)).toBeHidden();
  await context.close();
});

test("a chat elsewhere calls for its person, in the page and beside it", async ({ page, chat, gateway }) => {
  await allowNotices(page, gateway.url);
  await chat.say("later 2 echo one");
  await expect(page).toHaveURL(/\/chats\/.+/);
  await chat.fresh();
  await expect(page.getByText(/ needs you$/)).toBeVisible();
  expect(await notices(page)).toEqual([]);
  await page.getByRole("button", { name: "Decide", exact: true }).click();
  await expect(inbox(page).getByRole("article")).toHaveCount(1);
  await page.keyboard.press("Escape");

  await chat.say("later 2 echo two");
  await expect(page).toHaveURL(/\/chats\/.+/);
  await chat.fresh();
  await look(page, "elsewhere");
  await expect
    .poll(() => notices(page))
    .toEqual([{ title: expect.stringMatching(/ needs you$/) as unknown, body: "" }]);
  await expect(badge(page)).toHaveText(/2$/);
});

test("a card has our headline, and hides nothing that would run", async ({ page, chat }) => {
  await chat.field.fill(`bash echo ok\u202E # ${"\n".repeat(60)}echo last`);
  await chat.field.press("Enter");
  const card = chat.log.getByRole("alertdialog");
  await expect(card.getByText("DeerFlow wants to run a command", { exact: true })).toBeVisible();
  await expect(card.getByText("Asked by the main agent")).toBeVisible();
  await expect(card.getByRole("figure")).toHaveText(/^In the agent’s words\s*Run the command$/);
  await expect(card.getByText("⟦U+202E⟧")).toBeVisible();
  await expect(card.getByText(/echo last/)).toHaveCount(0);
  await card.getByRole("button", { name: "Show 37 more lines" }).click();
  await expect(card.getByText(/echo last/)).toBeVisible();
  await card.getByRole("button", { name: "Only for calls like this…" }).click();
  await card.getByRole("radiogroup", { name: "command" }).getByRole("radio", { name: "Any" }).click();
  await card.getByRole("button", { name: "In this chat" }).click();
  await chat.sees("The command has ended.");
  await chat.ask("bash echo two");
  await expect(chat.log.getByText("The command has ended.")).toHaveCount(2);
  await page.goto("/settings/approvals");
  await expect(page.getByRole("list", { name: "In single chats" })).toContainText("only like: command: any");
});

test("a source is trusted from the card, after a word on what that means", async ({ page, chat }) => {
  const file = { name: "notes.txt", mimeType: "text/plain", buffer: Buffer.from("Pay the bill.") };
  await page.getByLabel("Add files").last().setInputFiles(file);
  await chat.say("bash echo three");
  const card = chat.log.getByRole("alertdialog");
  await expect(card.getByRole("listitem")).toHaveText("notes.txt");
  await card.getByRole("button", { name: "I trust notes.txt" }).click();
  const dialog = page.getByRole("alertdialog", { name: "Trust notes.txt?" });
  await expect(dialog).toContainText("may act on it without asking you");
  await dialog.getByRole("button", { name: "I trust this" }).click();
  await expect(card.getByRole("listitem")).toHaveText("notes.txt (trusted)");
  const id = new URL(page.url()).pathname.split("/").pop();
  const answer = await page.request.get(`/api/threads/${id}/sources`);
  expect(await answer.json()).toEqual({ sources: [{ kind: "upload", name: "notes.txt", trusted: true }] });
});
