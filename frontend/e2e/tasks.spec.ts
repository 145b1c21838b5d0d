import type { Locator, Page } from "@playwright/test";
import { Chat } from "./chat";
import { expect, signIn, test } from "./fixtures";
import { Gateway } from "./server";

const group = (page: Page) => page.getByRole("log").getByLabel("Sub-agents", { exact: true });
const card = (page: Page, name: string) => group(page).getByRole("listitem").filter({ hasText: name });
const opens = (place: Locator, name: string) =>
  place.getByRole("button", { name: new RegExp(`^(?!Stop).*${name}`) }).first();
const panel = (page: Page, name: string) => page.getByRole("region", { name, exact: true });

test.beforeEach(({ chat }) => chat.ultra());

const THREE = "delegate Count the rows: slow 60 // Read the notes: slow 24 // Write the report: write";

test("three sub-agents work side by side, each with what it is at and what it cost", async ({
  page,
  chat,
}) => {
  await chat.say(THREE);
  await expect(card(page, "Count the rows")).toContainText("Working");
  await expect(card(page, "Read the notes")).toContainText("Run the command");
  const report = card(page, "Write the report");
  await expect(report).toContainText("Done");
  await expect(report).toContainText("The report is ready: sales grew by 34 % in spring.");
  await expect(report).toContainText(/tokens · \$0\.\d+/);
  await expect(report).toContainText("1 file");
  await expect(card(page, "Count the rows")).toContainText("Working"); // it takes longer

  await report.getByRole("button", { name: "Steps" }).click();
  await report.getByRole("button", { name: /Wrote a file, edited a file/ }).click();
  await expect(report).toContainText("Make it precise");
  await chat.done();
  await expect(group(page).getByText("Done", { exact: true })).toHaveCount(3);
  await chat.sees("All 3 have reported.");
});

test("its transcript opens beside the chat, live while it works and as it was for ever after", async ({
  page,
  chat,
}) => {
  await chat.say("delegate Count the rows: slow 60 // Read the notes: slow 2");
  await opens(card(page, "Count the rows"), "Count the rows").click();
  const shown = panel(page, "Count the rows");
  await expect(shown).toContainText("slow 60"); // what it was asked
  await expect(shown).toContainText(/step 3 of 60/);
  await expect(shown).toContainText(/step 9 of 60/);
  await expect(shown.getByRole("log").getByText("step 1 of 60")).toBeVisible();

  await page.reload();
  await expect(shown).toContainText(/step 2\d of 60/); // it goes on from where it stands now
  await expect(shown).toContainText("The command has ended. All is well.");
  await chat.done();
  await page.reload();
  await expect(shown).toContainText("The command has ended. All is well.");
  await shown.getByRole("button", { name: "Run the command" }).click();
  await expect(shown).toContainText("step 60 of 60");

  await opens(card(page, "Read the notes"), "Read the notes").click();
  await expect(panel(page, "Read the notes")).toContainText("slow 2");
  await panel(page, "Read the notes").getByRole("button", { name: "Close" }).click();
  await expect(page).not.toHaveURL(/panel=/);
});

test("one is stopped, the others and the agent go on", async ({ page, chat }) => {
  await chat.say("delegate Count the rows: slow 400 // Read the notes: slow 400 // Look around: slow 12");
  await expect(card(page, "Count the rows")).toContainText("Run the command");
  await card(page, "Count the rows").getByRole("button", { name: "Stop Count the rows" }).click();
  await expect(card(page, "Count the rows").getByText("Stopped").first()).toBeVisible();
  await expect(page.getByRole("button", { name: "Stop Count the rows" })).toHaveCount(0);
  await expect(card(page, "Read the notes")).toContainText("Working");

  await opens(card(page, "Read the notes"), "Read the notes").click();
  const shown = panel(page, "Read the notes");
  await expect(shown).toContainText(/step \d+ of 400/);
  await shown.getByRole("button", { name: "Stop Read the notes" }).click();
  await expect(shown.getByText("Stopped").first()).toBeVisible();
  await chat.sees("All 3 have reported.");
  await page.reload();
  await expect(group(page).getByText("Stopped", { exact: true }).first()).toBeVisible();
  await expect(card(page, "Look around")).toContainText("Done");
});

test("those in the background stand above the message field until their results have come @nightly", async ({
  page,
  chat,
}) => {
  await chat.say("aside Count the rows: slow 40 // Read the notes: slow 400");
  const dock = page.getByRole("region", { name: /in the background/ });
  await expect(dock.getByRole("listitem")).toHaveCount(2);
  await chat.sees("All 2 have reported."); // the agent goes on meanwhile
  await opens(dock, "Count the rows").click();
  await expect(panel(page, "Count the rows")).toContainText(/step \d+ of 40/);
  await dock.getByRole("button", { name: "Stop Read the notes" }).click();
  await expect(dock.getByRole("listitem")).toHaveCount(1);
  await chat.sees("Hello! I am a scripted model."); // the agent was told of it
  await expect(page.getByRole("article")).toHaveCount(1);
  await expect(dock).toBeHidden();
  await chat.done();
  await expect(card(page, "Read the notes")).toContainText("Stopped");
  await expect(card(page, "Count the rows")).toContainText("The command has ended.");
});

test("one that fails says why, and the agent goes on", async ({ page, chat }) => {
  await chat.ask("delegate Read the notes: error 400 // Look around: slow 2");
  await expect(card(page, "Read the notes")).toContainText(/Failed: /);
  await expect(card(page, "Look around")).toContainText("Done");
  await opens(card(page, "Read the notes"), "Read the notes").click();
  await expect(panel(page, "Read the notes")).toContainText("Failed");
  await chat.sees("All 2 have reported.");
});

test("many stand in one list with their totals @nightly", async ({ page, chat }) => {
  const parts = Array.from({ length: 8 }, (_, i) => `Part ${i + 1}: ${i === 4 ? "error 400" : "slow 4"}`);
  await chat.say(`delegate ${parts.join(" // ")}`);
  const tree = group(page).getByRole("button", { name: /sub-agents/ });
  await expect(tree).toContainText("6 sub-agents");
  await expect(tree).toContainText("working");
  await expect(tree).toHaveAttribute("aria-expanded", "true");
  await chat.done();
  await expect(tree).toContainText("8 sub-agents7 done · 1 failed");
  await expect(tree).toContainText(/k tokens · \$0\.\d+/);
  await expect(tree).toHaveAttribute("aria-expanded", "false");
  await tree.click();
  await expect(group(page).getByRole("listitem")).toHaveCount(8);
  await opens(card(page, "Part 7"), "Part 7").click();
  await expect(panel(page, "Part 7")).toContainText("slow 4");
});

test("on a phone the transcript fills the screen, and gives the focus back", async ({ page, chat }) => {
  await page.setViewportSize({ width: 390, height: 780 });
  await chat.say("delegate Count the rows of all the sheets in the folder: slow 40");
  const opener = opens(card(page, "Count the rows"), "Count the rows");
  await opener.click();
  const sheet = page.getByRole("dialog");
  await expect(sheet).toContainText(/step \d+ of 40/);
  expect((await sheet.boundingBox())?.width).toBe(390);
  await sheet.getByRole("button", { name: "Close" }).click();
  await expect(sheet).toBeHidden();
  await expect(opener).toBeFocused();
  expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBe(390);
});

test("all of it works with the keyboard", async ({ page, chat }) => {
  await chat.say("delegate Count the rows: slow 400");
  const opener = opens(card(page, "Count the rows"), "Count the rows");
  await opener.focus();
  await page.keyboard.press("Enter");
  await expect(panel(page, "Count the rows")).toContainText(/step \d+ of 400/);
  await expect(opener).toBeFocused();
  await page.keyboard.press("Enter");
  await expect(panel(page, "Count the rows")).toBeHidden();
  await page.keyboard.press("Tab");
  await expect(page.getByRole("button", { name: "Stop Count the rows" })).toBeFocused();
  await page.keyboard.press("Enter");
  await expect(card(page, "Count the rows").getByText("Stopped").first()).toBeVisible();
  await chat.done();
});

test("what a sub-agent needs a decision for is decided in the conversation", async ({ model, browser }) => {
  const gateway = await new Gateway(model.url, ["--guardrail"]).start();
  const context = await browser.newContext({ baseURL: gateway.url });
  try {
    await signIn(context, gateway.url);
    const page = await context.newPage();
    const chat = new Chat(page);
    await page.goto("/chats");
    await chat.ultra();
    await chat.say("delegate Clean up: bash echo cleaned // Read the notes: think");
    const decision = chat.log.getByRole("alertdialog");
    await expect(decision).toContainText("echo cleaned");
    await expect(card(page, "Clean up")).toContainText("Waiting for you");
    await expect(card(page, "Read the notes")).toContainText("Done");
    await page.reload();
    await expect(card(page, "Clean up")).toContainText("Waiting for you");
    await expect(card(page, "Read the notes")).toContainText("Done");
    await decision.getByRole("button", { name: "Allow", exact: true }).click();
    await expect(card(page, "Clean up")).toContainText("Done");
    await chat.sees("All 2 have reported.");
  } finally {
    await context.close();
    await gateway.stop();
  }
});
