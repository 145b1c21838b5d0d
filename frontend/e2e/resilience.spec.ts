import { expect, signIn, test } from "./fixtures";
import { Chat } from "./chat";
import { Gateway } from "./server";

test("a gateway that is killed in mid-run and started again loses nothing", async ({ model, browser }) => {
  const gateway = await new Gateway(model.url).start();
  const context = await browser.newContext();
  try {
    await signIn(context, gateway.url);
    const chat = new Chat(await context.newPage());
    await chat.page.goto(`${gateway.url}/chats`);
    await chat.say("many 20");
    await expect(chat.log.getByText(/Look at part|Ran \d|Running/).first()).toBeVisible();
    await gateway.kill();
    await expect(chat.page.getByText("The connection is lost.")).toBeVisible();
    await gateway.start();
    await expect(chat.page.getByText("The connection is lost.")).toBeHidden();
    await chat.sees("I looked at 20 parts. Nothing is missing.");
  } finally {
    await context.close();
    await gateway.stop();
  }
});

test("offline is told, and what was missed comes after", async ({ page, chat }) => {
  await chat.say("many 15");
  await page.context().setOffline(true);
  await expect(page.getByText("The connection is lost.")).toBeVisible({ timeout: 40_000 });
  await page.context().setOffline(false);
  await expect(page.getByText("The connection is lost.")).toBeHidden();
  await chat.sees("I looked at 15 parts. Nothing is missing.");
});

test("a message that cannot be sent is not lost", async ({ page, chat }) => {
  await chat.ask("hello");
  await page.route("**/runs", (route) =>
    route.request().method() === "POST"
      ? route.fulfill({ status: 409, json: { detail: "Thread is busy.", code: "thread_busy" } })
      : route.continue(),
  );
  await chat.field.fill("keep me");
  await chat.field.press("Enter");
  await expect(page.getByText("Thread is busy.").first()).toBeVisible();
  await expect(chat.field).toHaveValue("keep me");
});
