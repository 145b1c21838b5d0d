import { Chat } from "./chat";
import { expect, test } from "./fixtures";

/** The gateway asks before files are written and commands run. */
test.use({ flags: ["--guardrail"] });

const cards = (chat: Chat) => chat.log.getByRole("alertdialog");
const card = (chat: Chat, holds: string) => cards(chat).filter({ hasText: holds });

test("calls that wait are decided in any order, each in its own way", async ({ page, chat }) => {
  await chat.say("site");
  await expect(cards(chat)).toHaveCount(4);
  await expect(cards(chat).first()).toContainText("DeerFlow wants to write the file index.html");
  await expect(chat.log.getByText("New file")).toHaveCount(4); // cards grow until they show what would be written

  const style = card(chat, "Write style.css");
  await style.getByRole("button", { name: "Don’t allow" }).click();
  await style.getByRole("textbox").fill("No colours, please");

  // One that is decided leaves the others as they are, half a sentence included.
  await card(chat, "Write second.html").getByRole("button", { name: "Reply for the tool" }).click();
  await card(chat, "Write second.html").getByRole("textbox").fill("It is there already");
  await card(chat, "Write second.html").getByRole("button", { name: "Send answer" }).click();
  await expect(cards(chat)).toHaveCount(3);
  await expect(style.getByRole("textbox")).toHaveValue("No colours, please");

  await page.reload();
  await expect(cards(chat)).toHaveCount(3);
  await card(chat, "Write app.js").getByRole("button", { name: "Allow", exact: true }).click();
  await expect(cards(chat)).toHaveCount(2);
  await style.getByRole("button", { name: "Don’t allow" }).click();
  await style.getByRole("textbox").fill("No colours, please");
  await style.getByRole("button", { name: "Don’t allow" }).click();
  await expect(cards(chat)).toHaveCount(1);

  const index = card(chat, "Write index.html");
  await index.getByRole("button", { name: "Change" }).click();
  await index.getByLabel("content").fill("<h1>Mine</h1>");
  await index.getByRole("button", { name: "Allow with changes" }).click();
  await chat.sees("The site is ready");
  await expect(cards(chat)).toHaveCount(0);
  await chat.done();
  await expect(page.frameLocator("iframe").getByRole("heading", { name: "Mine" })).toBeVisible();
});

test("a message in place of decisions says before that it declines what waits", async ({ page, chat }) => {
  await chat.say("twice echo one");
  await expect(cards(chat)).toHaveCount(2);
  const warning = "Sending a message now declines the 2 calls that wait for you.";
  await expect(page.getByText(warning)).toBeVisible();
  await expect(chat.field).toHaveAccessibleDescription(warning);
  await chat.ask("hello instead");
  await expect(cards(chat)).toHaveCount(0);
  await expect(page.getByText(warning)).toBeHidden();
  await expect(chat.field).toHaveAccessibleDescription("");
  const steps = chat.log.getByRole("button", { name: "2 not run" });
  await expect(steps).toBeVisible();
  await expect(chat.log.getByText(/Ran 2 commands/)).toHaveCount(0);
  await steps.click();
  await expect(chat.log.getByText("Not allowed")).toHaveCount(2);
});

test("while an allowed command runs, the next one is decided already", async ({ chat }) => {
  await chat.say("twice sleep 3; echo slow");
  await expect(cards(chat)).toHaveCount(2);
  await cards(chat).first().getByRole("button", { name: "Allow", exact: true }).click();
  await expect(cards(chat)).toHaveCount(1);
  await cards(chat).getByRole("button", { name: "Allow", exact: true }).click();
  await expect(cards(chat)).toHaveCount(0);
  await chat.sees("Both commands have ended.");
  await chat.done();
  await expect(cards(chat)).toHaveCount(0);
});

test("a tool is allowed in this chat, until that is revoked", async ({ page, chat }) => {
  await chat.say("bash echo one");
  await cards(chat).getByRole("button", { name: "In this chat" }).click();
  await chat.sees("The command has ended.");
  await chat.ask("bash echo two");
  await expect(cards(chat)).toHaveCount(0);
  await expect(chat.log.getByText("The command has ended.")).toHaveCount(2);
  const thread = page.url();

  await page.goto("/settings/approvals");
  const grants = page.getByRole("list", { name: "In single chats" });
  await expect(grants.getByRole("listitem")).toContainText("bash");
  await expect(grants.getByRole("listitem")).toContainText("every call");
  await expect(grants.getByRole("link", { name: /bash echo one|A scripted/ })).toHaveAttribute(
    "href",
    /chats/,
  );
  await page.getByRole("button", { name: "Revoke: bash" }).click();
  await expect(page.getByText("No saved approvals")).toBeVisible();

  await page.goto(thread);
  await chat.say("bash echo three");
  await expect(cards(chat)).toHaveCount(1);
});

test("what waits for a decision is in the timeline", async ({ page, chat }) => {
  await chat.say("bash echo 1");
  await expect(cards(chat)).toHaveCount(1);
  await page.getByRole("button", { name: "Timeline", exact: true }).click();
  const rows = page.getByRole("tree").getByRole("treeitem");
  const decision = rows.filter({ hasText: "Approval: bash" });
  await expect(decision).toHaveAccessibleName(/waiting for you/);
  await cards(chat).getByRole("button", { name: "Allow", exact: true }).click();
  await expect(decision).toHaveAccessibleName(/\d(s|ms) allowed$/);
  await expect(rows.filter({ hasText: /^bash/ })).toHaveCount(1);
});
