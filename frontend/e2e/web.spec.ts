import type { BrowserContextOptions, Page } from "@playwright/test";
import { Chat } from "./chat";
import { expect, test as base } from "./fixtures";
import { Web } from "./server";
import type { Session } from "./session";
import { violations } from "./axe";

/** Answers from the web: the model is scripted and the web is small, all else is real. */
const test = base.extend<object, { web: Web }>({
  web: [
    async ({}, use) => {
      const web = await new Web().start();
      await use(web);
      await web.stop();
    },
    { scope: "worker", timeout: 100_000 },
  ],
  flags: [async ({ web }, use) => use(["--web", web.url]), { scope: "worker" }],
});

test.use({ signedIn: false });

/** A signed-in page, and every address that its browser calls. */
async function opened(page: Page, session: Session) {
  const called: string[] = [];
  page.on("request", (request) => called.push(request.url()));
  await session.enter(page.context());
  await page.goto(`${session.url}/chats`);
  const foreign = () =>
    called.filter((url) => !/^(data|blob):/.test(url) && new URL(url).hostname !== "localhost");
  return { chat: new Chat(page), foreign };
}

const chip = (page: Page, name: RegExp) => page.getByRole("link", { name }).first();
const panelOf = (page: Page) => {
  const name = "Files of this conversation";
  return page.getByRole("complementary", { name }).or(page.getByRole("region", { name }));
};
const card = (page: Page) => page.getByRole("dialog", { name: /^\d, / });

test("an answer lists its sources in one line, which opens", async ({ page, session, web }) => {
  const { chat } = await opened(page, session);
  await chat.ask(`cite ${web.url}`);
  const line = chat.log.getByRole("button", { name: "3 sources" });
  await line.focus();
  await page.keyboard.press("Enter");
  await expect(line).toHaveAttribute("aria-expanded", "true");
  const rows = chat.log.locator("[data-sources]").getByRole("listitem");
  await expect(rows).toHaveCount(3);
  await expect(rows.nth(1)).toContainText("Quieter streets in Cork");
  await rows.nth(1).getByRole("button").click();
  const panel = panelOf(page);
  await expect(panel.getByText(/Source: http:\/\/127\.0\.0\.2/)).toBeVisible();
  expect(await violations(page)).toEqual([]);
});

test("a delivered report has the same citations", async ({ page, session, web }) => {
  const { chat } = await opened(page, session);
  await chat.ask(`cite ${web.url}`);
  await chat.log
    .getByRole("button", { name: /cited\.md/ })
    .last()
    .click();
  const panel = panelOf(page);
  await expect(panel.locator("[data-citation]")).toHaveText(["1", "2"]);
  await expect(panel.getByText("[1] Quieter streets, 2026.")).toBeVisible();
  await panel.getByRole("link", { name: /^2, Quieter streets, 2026, 127/ }).click();
  await expect(card(page).locator("mark")).toHaveText(/^In Cork, noise at night/);
});

test("what is copied has the words and links of citations", async ({ page, session, web, context }) => {
  await context.grantPermissions(["clipboard-read", "clipboard-write"], { origin: session.url });
  const { chat } = await opened(page, session);
  await chat.ask(`cite ${web.url}`);
  await chat.log.getByRole("button", { name: "Copy answer" }).last().click();
  const copied = () => page.evaluate(() => navigator.clipboard.readText());
  await expect.poll(copied).toContain(`[Quieter streets in Aarau](${web.url}/aarau)`);
  expect(await copied()).not.toContain("citation:");
});

test("pictures of other sites are frames until they are asked for", async ({ page, session, web }) => {
  const { chat, foreign } = await opened(page, session);
  await chat.ask("pictures");
  await chat.log
    .getByRole("button", { name: /quiet streets/ })
    .first()
    .click();
  const frames = chat.log.getByRole("listitem").filter({ hasText: "A quiet street in" });
  await expect(frames).toHaveCount(4);
  await expect(frames.first()).toContainText("1600 × 1200");
  await expect(chat.log.locator("img")).toHaveCount(0);
  expect(await violations(page)).toEqual([]);
  const show = frames.first().getByRole("button", { name: "Show picture: A quiet street in Aarau" });
  await show.focus();
  await page.keyboard.press("Enter");
  const picture = frames.first().getByRole("img", { name: "A quiet street in Aarau" });
  await expect(picture).toBeVisible();
  expect(await picture.evaluate((img: HTMLImageElement) => img.naturalWidth)).toBe(160);
  await expect(frames.first().getByRole("button", { name: /^Open picture/ })).toBeFocused();
  await frames
    .nth(3)
    .getByRole("button", { name: /^Show picture/ })
    .click();
  await expect(frames.nth(3).getByRole("alert")).toHaveText("Couldn’t load this picture");
  expect(foreign()).toEqual([]);
  expect(web.url).toBeTruthy();
});

const LOOKS: [string, BrowserContextOptions][] = [
  ["light", { viewport: { width: 1360, height: 860 }, colorScheme: "light" }],
  ["dark", { viewport: { width: 1360, height: 860 }, colorScheme: "dark" }],
  ["phone", { viewport: { width: 390, height: 844 }, colorScheme: "light", isMobile: true, hasTouch: true }],
];
for (const [look, options] of LOOKS) {
  test(
    `everybody can use citations and pictures: ${look}`,
    { tag: "@nightly" },
    async ({ browser, session, web }, info) => {
      const context = await browser.newContext({ ...options, bypassCSP: true });
      const page = await context.newPage();
      const { chat } = await opened(page, session);
      await chat.ask(`cite ${web.url}`);
      await chat.log.getByRole("button", { name: "3 sources" }).click();
      await expect(chat.log.locator("[data-sources]").getByRole("listitem")).toHaveCount(3);
      const found = [...(await violations(page))];
      await page.screenshot({ path: info.outputPath(`${look}-sources.png`) });
      const one = chip(page, /^1, Quieter/);
      await (options.hasTouch ? one.tap() : one.click());
      await expect(card(page).locator("mark")).toBeVisible();
      await page.waitForTimeout(400);
      found.push(...(await violations(page)));
      await page.screenshot({ path: info.outputPath(`${look}-card.png`) });
      const box = await card(page).boundingBox();
      expect(box!.x).toBeGreaterThanOrEqual(0);
      expect(box!.x + box!.width).toBeLessThanOrEqual(options.viewport!.width);
      await page.keyboard.press("Escape");
      await chat.ask("pictures");
      await chat.log
        .getByRole("button", { name: /quiet streets/ })
        .last()
        .click();
      await chat.log
        .getByRole("button", { name: /^Show picture: A quiet/ })
        .first()
        .click();
      await expect(chat.log.getByRole("img", { name: "A quiet street in Aarau" })).toBeVisible();
      await page.waitForTimeout(400);
      found.push(...(await violations(page)));
      await page.screenshot({ path: info.outputPath(`${look}-pictures.png`) });
      expect(found).toEqual([]);
      await context.close();
    },
  );
}

// Last: the web that all tests of the worker share says something else from then on.
test("a citation shows what was read, and opens the page as it was then", async ({ page, session, web }) => {
  const { chat, foreign } = await opened(page, session);
  await chat.ask(`cite ${web.url}`);
  const first = chip(page, /^1, Quieter streets in Aarau, 127\.0\.0\.2/);
  await expect(first).toBeVisible();
  await expect(chat.log.getByText("citation:")).toHaveCount(0);
  await expect(chat.log.locator("[data-citation]")).toHaveText(["1", "2", "3", "1"]);
  web.change();

  // What opens at the end of a turn may move the citation away from the pointer.
  await expect(async () => {
    await page.mouse.move(5, 5);
    await first.hover();
    await expect(card(page).locator("mark")).toHaveText(/^In Aarau, noise at night fell by 3\.4 decibels/, {
      timeout: 3000,
    });
  }).toPass();
  await page.mouse.move(5, 5);
  await expect(card(page)).toBeHidden();

  await first.press("Enter");
  await expect(card(page)).toBeFocused();
  await expect(card(page).locator("mark")).toBeVisible();
  await page.keyboard.press("Tab");
  await expect(card(page).getByRole("button", { name: "View saved copy" })).toBeFocused();
  const visit = card(page).getByRole("link", { name: "Visit site" });
  await expect(visit).toHaveAttribute("rel", "noopener noreferrer nofollow");
  await page.keyboard.press("Escape");
  await expect(card(page)).toBeHidden();
  await expect(first).toBeFocused();

  await first.click();
  await card(page).getByRole("button", { name: "View saved copy" }).click();
  const panel = panelOf(page);
  await expect(panel.getByText(/In Aarau, noise at night fell by 3\.4 decibels/)).toBeVisible();
  await expect(panel.getByText("moved to our new site")).toBeHidden();

  await chip(page, /^3, Not opened, shop\.example/).click();
  await expect(card(page).getByText("The agent didn’t open this page")).toBeVisible();
  expect(foreign()).toEqual([]);
});
