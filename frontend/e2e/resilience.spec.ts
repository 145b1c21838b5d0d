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
    await expect(chat.page.getByText("Connection lost.")).toBeVisible();
    await gateway.start();
    await expect(chat.page.getByText("Connection lost.")).toBeHidden();
    await chat.done();
    await chat.sees("I looked at 20 parts. Nothing is missing.");
  } finally {
    await context.close();
    await gateway.stop();
  }
});

test("offline is told, and what was missed comes after", async ({ page, chat }) => {
  await chat.say("many 30");
  await expect(chat.log.getByText(/Look at part|Ran \d|Running/).first()).toBeVisible(); // the server has it
  await page.context().setOffline(true);
  const banner = page.getByText("Connection lost.");
  await expect(banner).toBeVisible({ timeout: 40_000 });
  await chat.field.fill("and be brief");
  await chat.field.press("ControlOrMeta+Enter");
  const notice = page.getByText("Couldn’t reach the agent");
  await expect(notice).toBeVisible();
  const [above, below] = [await banner.boundingBox(), await notice.boundingBox()];
  expect(below!.y).toBeGreaterThan(above!.y + above!.height); // both can be read
  await page.context().setOffline(false);
  await expect(page.getByText("Connection lost.")).toBeHidden();
  await chat.sees("I looked at 30 parts. Nothing is missing.");
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
  await expect(page.getByText("DeerFlow is still working in this chat.").first()).toBeVisible();
  await expect(chat.field).toHaveValue("keep me");
});

/** How often the person is seen to have said it, after a reload. */
const timesSaid = async (chat: Chat, text: string) => {
  await chat.page.reload();
  await chat.sees(text);
  return chat.log.getByText(text, { exact: true }).count();
};

for (const place of ["a new conversation", "one that goes on"]) {
  test(`what is said without a network in ${place} is kept, and sent once when it is back`, async ({
    page,
    chat,
  }) => {
    if (place !== "a new conversation") await chat.ask("hello");
    else await chat.field.waitFor();
    await page.context().setOffline(true);
    await chat.say("hello again");
    await expect(page.getByText("Not sent yet: can’t reach the server.")).toBeVisible();
    await chat.say("hello last");
    await page.context().setOffline(false);
    await expect(page.getByText("Not sent yet")).toBeHidden();
    await expect(page).toHaveURL(/\/chats\/.+/);
    await chat.done();
    expect(await timesSaid(chat, "hello again")).toBe(1);
    expect(await timesSaid(chat, "hello last")).toBe(1);
  });
}

test("a part of the page that had not come before the network went is waited for", async ({ page, chat }) => {
  await page.addInitScript(() => Object.assign(window, { requestIdleCallback: () => 0 })); // nothing is fetched ahead
  await page.goto("/chats");
  await chat.field.waitFor();
  const missing: string[] = [];
  page.on("requestfailed", (request) => missing.push(request.url()));
  await page.context().setOffline(true);
  await chat.say("hello again");
  await expect(page.getByText("Not sent yet: can’t reach the server.")).toBeVisible();
  expect(missing.some((url) => url.includes("/_next/static/"))).toBe(true);
  await page.context().setOffline(false);
  await chat.done();
  await expect(page.getByText("Not sent yet")).toBeHidden();
  expect(await timesSaid(chat, "hello again")).toBe(1);
});

test("what is said while the server is down is sent when it is back, and can be taken back before", async ({
  model,
  browser,
}) => {
  const gateway = await new Gateway(model.url).start();
  const context = await browser.newContext();
  try {
    await signIn(context, gateway.url);
    const chat = new Chat(await context.newPage());
    await chat.page.goto(`${gateway.url}/chats`);
    await chat.ask("hello");
    await gateway.kill();
    await chat.say("hello one");
    await expect(chat.page.getByText("Not sent yet: can’t reach the server.")).toBeVisible();
    await chat.stop.click();
    await expect(chat.field).toHaveValue("hello one");
    await chat.field.fill("hello two");
    await chat.field.press("Enter");
    await expect(chat.page.getByText("Not sent yet: can’t reach the server.")).toBeVisible();
    await gateway.start();
    await expect(chat.page.getByText("Not sent yet")).toBeHidden();
    await chat.done();
    expect(await timesSaid(chat, "hello two")).toBe(1);
    await expect(chat.log.getByText("hello one", { exact: true })).toBeHidden();
  } finally {
    await context.close();
    await gateway.stop();
  }
});

test("a message that arrived, but whose answer was lost, is not sent twice", async ({ page, chat }) => {
  await chat.ask("hello");
  let lost = 0;
  await page.route("**/runs", async (route) => {
    if (route.request().method() !== "POST" || lost > 0) return route.continue();
    lost += 1;
    await route.fetch();
    return route.abort();
  });
  await chat.say("hello once");
  await expect(page.getByText("Not sent yet")).toBeHidden();
  await chat.done();
  expect(lost).toBe(1);
  await chat.page.reload();
  await chat.sees("hello once");
  await expect(chat.log.getByText("hello once", { exact: true })).toHaveCount(1);
});

test("what could not be sent before the page was closed stands in the field again", async ({
  page,
  chat,
}) => {
  await chat.ask("hello");
  await page.route("**/runs", (route) =>
    route.request().method() === "POST" ? route.abort() : route.continue(),
  );
  await chat.say("precious words");
  await expect(page.getByText("Not sent yet: can’t reach the server.")).toBeVisible();
  await page.reload();
  await expect(chat.field).toHaveValue("precious words");
});
