import { readFileSync } from "node:fs";
import type { Page } from "@playwright/test";
import { askWithSubagents, Chat } from "./chat";
import { expect, test } from "./fixtures";

const panel = (page: Page) => page.getByRole("region", { name: "Timeline" });
const tree = (page: Page) => panel(page).getByRole("tree");
const row = (page: Page, name: RegExp) => tree(page).getByRole("treeitem", { name });
const opens = (page: Page) => page.getByRole("button", { name: "Timeline", exact: true });
const marked = (page: Page) => page.getByRole("log").locator("[data-marked]");

test("the timeline of a run grows with it, and is there after a reload", async ({ page, chat }) => {
  await chat.say("slow 12");
  await opens(page).click();
  const command = row(page, /^bash /);
  await expect(command).toHaveAccessibleName(/running/);
  await expect(row(page, /^scripted /)).toHaveCount(1);
  await chat.done();
  await expect(command).not.toHaveAccessibleName(/running/);
  await expect(row(page, /^scripted /)).toHaveCount(2);
  await expect(row(page, /^scripted .*first token after .* tokens in, 180 out/)).toHaveCount(1);
  const before = await tree(page).getByRole("treeitem").allTextContents();
  expect(new URL(page.url()).searchParams.get("panel")).toMatch(/^run:/);
  await page.reload();
  await expect(tree(page).getByRole("treeitem")).toHaveText(before);
  await panel(page).getByRole("button", { name: "Close the timeline" }).click();
  await expect(panel(page)).toBeHidden();
});

test("a click brings the step into sight, opens and marks it; with the keyboard, too", async ({
  page,
  chat,
}) => {
  await chat.ask("many 7");
  await opens(page).click();
  await chat.ask("prose 900");
  const third = row(page, /^bash Look at part 3/);
  await expect(chat.log.getByText("many 7", { exact: true })).not.toBeInViewport();
  await third.click();
  await expect(marked(page)).toHaveCount(1);
  await expect(marked(page)).toContainText("Look at part 3");
  await expect(marked(page)).toBeInViewport();
  await expect(marked(page).getByRole("button", { expanded: true }).first()).toBeFocused();

  await tree(page).focus();
  const chosen = tree(page).getByRole("treeitem", { selected: true });
  await expect(chosen).toHaveAccessibleName(/Look at part 3/);
  await expect(tree(page)).toHaveAttribute("aria-activedescendant", (await chosen.getAttribute("id"))!);
  await page.keyboard.press("ArrowRight");
  await page.keyboard.press("ArrowDown");
  await expect(chosen).toHaveAttribute("aria-level", "2");
  await page.keyboard.press("ArrowLeft");
  await page.keyboard.press("ArrowLeft");
  await expect(third).toHaveAttribute("aria-expanded", "false");
  await page.keyboard.press("End");
  await page.keyboard.press("Enter");
  await expect(marked(page)).toContainText("I looked at 7 parts");
  await expect(marked(page)).toBeFocused();
  await expect(marked(page)).toBeInViewport();
});

test("subagents have lanes, and what they did leads to their card", async ({ page, gateway }) => {
  const id = await askWithSubagents(page, gateway.url, "fleet 4 3");
  await page.goto(`/chats/${id}`);
  await opens(page).click();
  const lane = row(page, /^Look at part 2 general-purpose/);
  await expect(lane).toHaveAccessibleName(/7 steps inside/);
  await expect(row(page, /^glob /)).toHaveCount(0);
  await expect(panel(page).getByText(/tokens in, .* from cache/)).toBeVisible();
  await lane.locator("svg").first().click();
  await expect(lane).toHaveAttribute("aria-expanded", "true");
  await expect(row(page, /^glob /)).toHaveCount(3);
  await row(page, /^glob /)
    .nth(1)
    .click();
  await expect(marked(page)).toContainText("Look at part 2");
});

test("a run that failed has a timeline, too", async ({ page, chat }) => {
  await chat.say("error 401");
  await opens(page).click();
  await expect(row(page, /^Model .*failed/).or(row(page, /^scripted .*failed/))).toHaveCount(1);
});

test("both exports are whole", async ({ page, chat }) => {
  await chat.ask("bash echo hello");
  await opens(page).click();
  // the menu is opened while it still fades out
  await page.addStyleTag({ content: "[role=menu] { animation-duration: 2s !important }" });
  const saved = async (name: string) => {
    await panel(page).getByRole("button", { name: "Export" }).click();
    const [download] = await Promise.all([
      page.waitForEvent("download"),
      page.getByRole("menuitem", { name, exact: true }).click(),
    ]);
    return { name: download.suggestedFilename(), text: readFileSync(await download.path(), "utf8") };
  };
  const json = await saved("JSON");
  expect(json.name).toMatch(/^run-[\w-]+\.json$/);
  const { spans, run_id } = JSON.parse(json.text) as { spans: { kind: string }[]; run_id: string };
  expect(spans.map(({ kind }) => kind)).toEqual(["queue", "model", "tool", "command", "model"]);
  const otlp = await saved("OpenTelemetry (OTLP/JSON)");
  expect(otlp.name).toBe(`run-${run_id}.otlp.json`);
  const trace = JSON.parse(otlp.text) as {
    resourceSpans: { scopeSpans: { spans: { name: string; traceId: string }[] }[] }[];
  };
  const names = trace.resourceSpans[0]!.scopeSpans[0]!.spans.map(({ name }) => name);
  expect(names).toEqual([
    "invoke_agent lead_agent",
    "chat scripted",
    "execute_tool bash",
    "sandbox command",
    "chat scripted",
  ]);
});

test("on a phone it is a list with durations, and a tap leads back to the step", async ({
  browser,
  gateway,
  session,
}) => {
  const phone = { viewport: { width: 390, height: 844 }, isMobile: true, hasTouch: true };
  const context = await browser.newContext({ ...phone, locale: "en-US" });
  await session.enter(context);
  const page = await context.newPage();
  await page.goto(`${gateway.url}/chats`);
  const chat = new Chat(page);
  await chat.ask("many 3");
  await opens(page).tap();
  const second = row(page, /^bash Look at part 2/);
  await expect(second).toContainText(/\d+ms|\ds/);
  const { width } = (await panel(page).boundingBox())!;
  expect(width).toBeGreaterThanOrEqual(389); // the sheet has a border
  await expect(panel(page).getByText("Select a step")).toBeHidden();
  await expect(row(page, /^scripted .*first token/).first()).toContainText("tokens in");
  await second.tap();
  await expect(panel(page)).toBeHidden();
  await expect(marked(page)).toContainText("Look at part 2");
  await expect(marked(page)).toBeInViewport();
  await context.close();
});
