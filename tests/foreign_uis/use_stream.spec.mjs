import { expect, test } from "@playwright/test";
import { say, script, slowly } from "./support.mjs";

const LONG = Array.from({ length: 100 }, (_, index) => `word${index}`).join(" ");
const query = new URLSearchParams({ apiUrl: process.env.DEERFLOW_URL, apiKey: process.env.DEERFLOW_TOKEN });

async function send(page, text) {
  await page.getByLabel("Message").fill(text);
  await page.getByRole("button", { name: "Send" }).click();
}

const texts = (page) => page.getByRole("listitem").locator("span");

test("a chat goes on, with text as it is written", async ({ page }) => {
  await page.goto(`/use_stream/?${query}`);
  const key = await script(slowly(LONG), say("Two."));
  await send(page, key);
  await expect(texts(page).last()).toHaveText(/word9 /);
  await expect(texts(page).last()).not.toHaveText(/word99/);
  await expect(texts(page).last()).toHaveText(LONG);
  await send(page, "again");
  await expect(texts(page)).toHaveText([key, LONG, "again", "Two."]);
});
