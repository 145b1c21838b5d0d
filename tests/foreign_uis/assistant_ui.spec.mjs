import { expect, test } from "@playwright/test";
import { LONG, query } from "./parts.mjs";
import { call, client, say, script, slowly } from "./support.mjs";

test.beforeEach(({ page }) => page.goto(`/assistant_ui/?${query}`));

const items = (page) => page.getByRole("listitem");

async function send(page, text) {
  await page.getByLabel("Message").fill(text);
  await page.getByRole("button", { name: "Send" }).click();
}

test("one chats, and finds the thread again", async ({ page }) => {
  const key = await script(slowly(LONG), say("Two."));
  await send(page, key);
  await expect(items(page).last()).toContainText(/word9 /);
  await expect(items(page).last()).toContainText(LONG);
  await send(page, "again");
  await expect(items(page).last()).toContainText("Two.");
  await page.reload();
  await page.getByRole("button", { name: `Thread ${key}` }).click();
  await expect(items(page)).toHaveText([key, LONG, "again", "Two."].map((text) => new RegExp(`^${text}`)));
});

for (const reloads of [false, true]) {
  test(`a tool's question is answered${reloads ? " after a reload" : ""}`, async ({ page }) => {
    const key = await script(call("send_mail", { to: "ada@example.com" }), say("Sent."));
    await send(page, key);
    await expect(page.getByRole("alert")).toContainText('"to":"ada@example.com"');
    if (reloads) {
      await page.reload();
      await page.getByRole("button", { name: `Thread ${key}` }).click();
    }
    await page.getByRole("button", { name: "Yes" }).click();
    await expect(page.getByText('send_mail: Answered: "yes"')).toBeVisible();
    await expect(items(page).last()).toContainText("Sent.");
    await expect(page.getByRole("alert")).toBeHidden();
  });
}

test("a message is sent while a tool's question waits", async ({ page }) => {
  await send(page, await script(call("send_mail", { to: "ada@example.com" }), say("Well then.")));
  await expect(page.getByRole("alert")).toBeVisible();
  await send(page, "Something else.");
  await expect(items(page).last()).toContainText("Well then.");
});

test("a run is stopped", async ({ page }) => {
  const key = await script(slowly(LONG), say("Two."));
  await send(page, key);
  await expect(items(page).last()).toContainText(/word9 /);
  await page.getByRole("button", { name: "Stop" }).click();
  const status = async () => (await client.threads.search({ metadata: { graph_id: "lead_agent" }, limit: 1 }))[0].status;
  await expect.poll(status).not.toBe("busy");
  await send(page, "again");
  await expect(items(page).last()).toContainText("Two.");
});

test("a message is edited, and an answer asked for again", async ({ page }) => {
  const key = await script(say("One."), say("Other one."), say("Third one."));
  await send(page, key);
  await expect(items(page).last()).toContainText("One.");
  await page.getByRole("button", { name: "Edit" }).click();
  await page.getByLabel("Edited").fill(`${key} edited`);
  await page.getByRole("button", { name: "Save" }).click();
  await expect(items(page).last()).toContainText("Other one.");
  await page.getByRole("button", { name: "Again" }).click();
  await expect(items(page).last()).toContainText("Third one.");
  await expect(items(page)).toHaveCount(2);
});
