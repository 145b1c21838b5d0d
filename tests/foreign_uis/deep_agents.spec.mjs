import { expect, test } from "@playwright/test";
import { LONG, query } from "./parts.mjs";
import { call, client, say, script, slowly } from "./support.mjs";

const open = (page, hash = "") => page.goto(`/deep_agents/?${query}${hash}`);
const threadOf = (page) => new URL(page.url()).searchParams.get("threadId");

async function send(page, text) {
  await page.getByPlaceholder("Write your message...").fill(text);
  await page.getByRole("button", { name: "Send" }).click();
}

const shown = (page, text, options) => page.locator("section").getByText(text, options);
const done = (page) => expect(page.getByRole("button", { name: "Send" })).toBeVisible();

test("one chats, and finds the thread again", async ({ page }) => {
  await open(page);
  const key = await script(call("ls", { path: "/mnt/user-data" }), slowly(LONG), say("Two."));
  await send(page, key);
  await expect(shown(page, /word9 /)).toBeVisible();
  await expect(shown(page, LONG)).toBeVisible();
  await done(page);
  await send(page, "again");
  await expect(shown(page, "Two.", { exact: true })).toBeVisible();
  await done(page);
  await open(page);
  await page.getByRole("button", { name: key }).click();
  await expect(shown(page, "Two.", { exact: true })).toBeVisible();
  await expect(page.getByRole("button", { name: "ls" })).toBeVisible();
});

test("a reload in mid-run follows the run to its end", async ({ page }) => {
  await open(page);
  await send(page, await script(slowly(LONG)));
  await expect(shown(page, /word9 /)).toBeVisible();
  await page.reload();
  await expect(page.getByRole("button", { name: "Stop" })).toBeVisible();
  await expect(shown(page, LONG)).toHaveCount(1);
  await done(page);
});

test("a run is stopped", async ({ page }) => {
  await open(page);
  await send(page, await script(slowly(LONG), say("Two.")));
  await expect(shown(page, /word9 /)).toBeVisible();
  await page.getByRole("button", { name: "Stop" }).click();
  await expect.poll(async () => (await client.threads.get(threadOf(page))).status).not.toBe("busy");
  await done(page);
  await send(page, "again");
  await expect(shown(page, "Two.", { exact: true })).toBeVisible();
});

test("a run is gone through step by step", async ({ page }) => {
  await open(page, "#debug");
  await send(page, await script(call("ls", { path: "/mnt/user-data" }), say("Two.")));
  await page.getByRole("button", { name: "Continue" }).click();
  await expect(shown(page, "Two.", { exact: true })).toBeVisible();
  await done(page);
});

test("a tool's question stands under what requires attention", async ({ page }) => {
  await open(page);
  const key = await script(call("send_mail", { to: "ada@example.com" }), say("All done."));
  await send(page, key);
  await expect(page.getByText("Requiring Attention")).toBeVisible();
  await expect(page.getByRole("button", { name: "send_mail" })).toBeVisible();
  await client.runs.wait(threadOf(page), "lead_agent", { command: { resume: "yes" } });
  await page.reload();
  await expect(shown(page, "All done.", { exact: true })).toBeVisible();
});
