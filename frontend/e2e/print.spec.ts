import { longThread } from "./chat";
import { expect, test } from "./fixtures";

test("a conversation is printed as a document, whole and without the page around it", async ({
  page,
  gateway,
}) => {
  const id = await longThread(page, gateway.url, 120);
  await page.emulateMedia({ colorScheme: "dark" });
  await page.goto(`/chats/${id}`);
  const log = page.getByRole("log");
  await expect(log.getByText("answer 59")).toBeVisible();
  const paper = (await page.pdf({ path: process.env.PAPER })).toString("latin1");
  expect(paper.match(/\/Type\s*\/Page\b/g)?.length).toBeGreaterThan(5);
  await expect(log.getByText("answer 0", { exact: true })).toHaveCount(0);
  await expect(log.getByText("answer 59")).toBeInViewport();

  await page.emulateMedia({ media: "print" });
  await page.evaluate(() => window.dispatchEvent(new Event("beforeprint")));
  await expect(log.getByText("answer 0", { exact: true })).toBeVisible();
  await expect(log.getByRole("article")).toHaveCount(60);
  await expect(page.getByRole("navigation", { name: "Chats" })).toBeHidden();
  await expect(page.getByRole("textbox", { name: "Message" })).toBeHidden();
  await expect(page.getByRole("button", { name: "Copy answer" }).first()).toBeHidden();
  expect(await page.evaluate(() => document.documentElement.classList.contains("dark"))).toBe(false);
  await page.evaluate(() => window.dispatchEvent(new Event("afterprint")));
  expect(await page.evaluate(() => document.documentElement.classList.contains("dark"))).toBe(true);
});

test("an open file takes no room on paper", async ({ page, chat }) => {
  await chat.ask("write");
  await expect(page.getByRole("button", { name: "Close files" })).toBeVisible();
  await page.setViewportSize({ width: 700, height: 1000 }); // A4
  await page.emulateMedia({ media: "print" });
  await expect(page.getByRole("dialog")).toHaveCount(0);
  expect((await chat.log.getByRole("article").boundingBox())!.width).toBeGreaterThan(600);
  await expect(chat.log.getByText("report.md", { exact: true })).toBeVisible();
  await expect(chat.log.getByRole("link", { name: /^Download/ })).toBeHidden();
  await page.emulateMedia({ media: null });
  await page.setViewportSize({ width: 1280, height: 800 });
  const paper = (await page.pdf({ path: process.env.PAPER, format: "A4" })).toString("latin1");
  expect(paper.match(/\/Type\s*\/Page\b/g)).toHaveLength(1);
});
