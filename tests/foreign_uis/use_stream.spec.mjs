import { expect, test } from "@playwright/test";
import { LONG, query } from "./parts.mjs";
import { call, client, say, script, slowly } from "./support.mjs";

/** One page: its messages, and what can be pressed. */
class Chat {
  constructor(page, name) {
    Object.assign(this, { page, name, items: page.getByRole("listitem"), asked: page.getByRole("alert") });
    this.texts = this.items.locator("span");
    this.stop = page.getByRole("button", { name: "Stop" });
  }
  open = () => this.page.goto(`/${this.name}/?${query}`);
  press = (name) => this.page.getByRole("button", { name }).click();
  async send(text) {
    await this.page.getByLabel("Message").fill(text);
    await this.press("Send");
  }
  async says(...texts) {
    await expect(this.texts).toHaveText(texts);
    await expect(this.stop).toBeHidden();
    await expect(this.asked).toBeHidden();
  }
}

for (const name of ["use_stream", "react"]) {
  test.describe(name, () => {
    test("a chat goes on, with text as it is written", async ({ page }) => {
      const chat = new Chat(page, name);
      await chat.open();
      const key = await script(slowly(LONG), say("Two."));
      await chat.send(key);
      await expect(chat.texts.last()).toHaveText(/word9 /);
      await expect(chat.texts.last()).not.toHaveText(/word99/);
      await chat.says(key, LONG);
      await chat.send("again");
      await chat.says(key, LONG, "again", "Two.");
      await page.reload();
      await chat.says(key, LONG, "again", "Two.");
    });

    test("a reload in mid-run follows the run to its end", async ({ page }) => {
      const chat = new Chat(page, name);
      await chat.open();
      const key = await script(slowly(LONG));
      await chat.send(key);
      await expect(chat.texts.last()).toHaveText(/word9 /);
      await page.reload();
      await expect(chat.stop).toBeVisible();
      await chat.says(key, LONG);
    });

    test("a run is stopped", async ({ page }) => {
      const chat = new Chat(page, name);
      await chat.open();
      const key = await script(slowly(LONG), say("Two."));
      await chat.send(key);
      await expect(chat.texts.last()).toHaveText(/word9 /);
      await chat.stop.click();
      await expect(chat.stop).toBeHidden();
      const { searchParams } = new URL(page.url());
      await expect.poll(async () => (await client.threads.get(searchParams.get("threadId"))).status).not.toBe("busy");
      await chat.send("again");
      await expect(chat.texts.last()).toHaveText("Two.");
    });

    for (const reloads of [false, true]) {
      test(`a tool's question is answered${reloads ? " after a reload" : ""}`, async ({ page }) => {
        const chat = new Chat(page, name);
        await chat.open();
        const key = await script(call("send_mail", { to: "ada@example.com" }), say("Sent."));
        await chat.send(key);
        await expect(chat.asked).toHaveText(/"action":"send_mail","args":\{"to":"ada@example.com"\}/);
        if (reloads) await page.reload();
        await expect(chat.asked).toBeVisible();
        await chat.send("yes");
        await chat.says(key, "", 'Answered: "yes"', "Sent.");
      });
    }

    test("an edited message begins another branch", async ({ page }) => {
      const chat = new Chat(page, name);
      await chat.open();
      const key = await script(say("One."), say("Two."), say("Other two."));
      await chat.send(key);
      await chat.says(key, "One.");
      await chat.send("more");
      await chat.says(key, "One.", "more", "Two.");
      await chat.items.nth(2).getByRole("button", { name: "Edit" }).click();
      await chat.says(key, "One.", "more (edited)", "Other two.");
      await page.reload();
      await chat.says(key, "One.", "more (edited)", "Other two.");
    });
  });
}

test("an answer is asked for again", async ({ page }) => {
  const chat = new Chat(page, "use_stream");
  await chat.open();
  const key = await script(say("One."), say("Another one."));
  await chat.send(key);
  await chat.says(key, "One.");
  await chat.items.nth(1).getByRole("button", { name: "Again" }).click();
  await chat.says(key, "Another one.");
});

test("branches are gone through, and talked on in", async ({ page }) => {
  const chat = new Chat(page, "use_stream");
  await chat.open();
  const key = await script(say("One."), say("Other one."), say("Three."));
  await chat.send(key);
  await chat.says(key, "One.");
  await chat.items.nth(0).getByRole("button", { name: "Edit" }).click();
  await chat.says(`${key} (edited)`, "Other one.");
  await chat.press("Branch 1");
  await chat.says(key, "One.");
  await chat.send("more");
  await chat.says(key, "One.", "more", "Three.");
  await chat.press("Branch 2");
  await chat.says(`${key} (edited)`, "Other one.");
});
