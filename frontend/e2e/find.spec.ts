import { longThread } from "./chat";
import { expect, test } from "./fixtures";

const MARKED = () =>
  [...(CSS.highlights.get("found-current") ?? [])].map((range) => {
    const { top, bottom } = (range as Range).getBoundingClientRect();
    return { text: String(range), inSight: top > 0 && bottom < innerHeight };
  })[0];

test("words are found in a long conversation, also where it is not in the page", async ({
  page,
  gateway,
}) => {
  const id = await longThread(page, gateway.url, 300);
  await page.goto(`/chats/${id}`);
  const log = page.getByRole("log");
  await expect(log.getByText("answer 149")).toBeVisible();
  await expect(log.getByText("answer 12", { exact: true })).toHaveCount(0);

  await log.focus();
  await page.keyboard.press("Control+f");
  const field = page.getByRole("searchbox", { name: "Find in this chat" });
  await expect(field).toBeFocused();
  await page.keyboard.type("ANSWER 12");
  const status = page.getByRole("search").getByRole("status");
  await expect(status).toHaveText("11 of 11"); // 12 and 120 to 129, the newest first
  await expect.poll(() => page.evaluate(MARKED)).toEqual({ text: "answer 12", inSight: true });
  await expect(log.getByText("answer 129", { exact: true })).toBeInViewport();

  await page.keyboard.press("Enter"); // round to the first
  await expect(status).toHaveText("1 of 11");
  await expect(log.getByText("answer 12", { exact: true })).toBeInViewport();
  await expect.poll(() => page.evaluate(MARKED)).toEqual({ text: "answer 12", inSight: true });
  await page.keyboard.press("Shift+Enter");
  await expect(status).toHaveText("11 of 11");
  await page.getByRole("button", { name: "Previous" }).click();
  await expect(log.getByText("answer 128", { exact: true })).toBeInViewport();

  await field.fill("nowhere said");
  await expect(status).toHaveText("Nothing found");
  await field.press("Escape");
  await expect(field).toBeHidden();
  await expect(log).toBeFocused();
  expect(await page.evaluate(() => CSS.highlights.size)).toBe(0);
});

test("a conversation that is all in the page is left to the browser's own search", async ({
  page,
  gateway,
}) => {
  const id = await longThread(page, gateway.url, 4);
  await page.goto(`/chats/${id}`);
  await expect(page.getByText("answer 1", { exact: true })).toBeVisible();
  const taken = await page.evaluate(() => {
    const key = new KeyboardEvent("keydown", { key: "f", ctrlKey: true, bubbles: true, cancelable: true });
    return !document.body.dispatchEvent(key);
  });
  expect(taken).toBe(false);
  await expect(page.getByRole("searchbox", { name: "Find in this chat" })).toHaveCount(0);
});
