import { expect, test } from "./fixtures";
import { CHROMIUM } from "./server";

test.use({
  flags: ["--transcription"],
  permissions: ["microphone"],
  launchOptions: {
    executablePath: CHROMIUM,
    args: ["--no-sandbox", "--use-fake-device-for-media-stream", "--use-fake-ui-for-media-stream"],
  },
});

test(
  "what is dictated stands at the caret, and can be thrown away",
  { tag: "@nightly" },
  async ({ page, chat }) => {
    await chat.field.fill("Say: , please.");
    await chat.field.evaluate((field: HTMLTextAreaElement) => field.setSelectionRange(5, 5));
    const dictate = page.getByRole("button", { name: "Dictate" });
    await dictate.click();
    await expect(page.getByRole("button", { name: "Finish dictation" })).toBeVisible();
    await page.keyboard.press("Escape");
    await expect(dictate).toBeVisible();
    await expect(chat.field).toBeFocused();
    await expect(chat.field).toHaveValue("Say: , please.");

    await chat.field.evaluate((field: HTMLTextAreaElement) => field.setSelectionRange(5, 5));
    await dictate.click();
    await page.waitForTimeout(500); // something to be heard
    await page.getByRole("button", { name: "Finish dictation" }).click();
    await expect(chat.field).toHaveValue("Say: Hello from the microphone., please.");
    await expect(chat.field).toBeFocused();
  },
);

test("an answer is read aloud, and stops", { tag: "@nightly" }, async ({ page, chat }) => {
  await page.addInitScript(() => {
    const said: string[] = ((window as unknown as Record<string, unknown>)["said"] = []);
    speechSynthesis.speak = (one) => void said.push(`${one.lang}: ${one.text}`); // no voice is installed here
  });
  await page.reload();
  await chat.ask("hello");
  await chat.log.getByRole("button", { name: "Read aloud" }).click();
  await chat.log.getByRole("button", { name: "Stop reading" }).click();
  await expect(chat.log.getByRole("button", { name: "Read aloud" })).toBeFocused();
  const said = await page.evaluate(() => (window as unknown as Record<string, string[]>)["said"]);
  expect(said).toEqual([expect.stringMatching(/^en: \w/)]);
});
