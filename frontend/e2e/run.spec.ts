import { expect, signIn, test } from "./fixtures";
import { Chat } from "./chat";

test("an answer streams, gets its address, and is there after a reload", async ({ page, chat }) => {
  await chat.say("hello there");
  await chat.sees("I am a scripted model");
  await expect(page).toHaveURL(/\/chats\/[0-9a-f-]{36}$/);
  await chat.done();
  await page.reload();
  await chat.sees("I am a scripted model");
});

test("a reload in the middle of an answer goes on with it", async ({ page, chat }) => {
  await chat.say("long 5000");
  await chat.sees(/word20 /);
  await page.reload();
  await chat.sees(/word20 /);
  await expect(chat.stop).toBeVisible();
  const words = async () => (await chat.log.innerText()).match(/word\d+/g)?.length ?? 0;
  const before = await words();
  await expect.poll(words).toBeGreaterThan(before + 20);
  await chat.stop.click();
  await chat.done();
  const text = await chat.log.innerText();
  expect(text.match(/word5 /g)).toHaveLength(1);
});

test("a second browser sees the same live run, and what a program starts", async ({
  page,
  chat,
  browser,
  gateway,
}) => {
  await chat.say("long 5000");
  await expect(page).toHaveURL(/\/chats\/.+/);
  const context = await browser.newContext();
  await signIn(context, gateway.url);
  const second = new Chat(await context.newPage());
  await second.page.goto(page.url());
  await second.sees(/word30 /);
  await expect(second.stop).toBeVisible();
  await second.stop.click();
  await chat.sees("Stopped. The work so far is saved.");
  await second.done();

  const thread = page.url().split("/").at(-1);
  const csrf = (await context.cookies()).find(({ name }) => name === "csrf_token")?.value ?? "";
  await context.request.post(`${gateway.url}/api/threads/${thread}/runs`, {
    data: { assistant_id: "lead_agent", input: { messages: [{ role: "user", content: "think" }] } },
    headers: { "X-CSRF-Token": csrf, Origin: gateway.url },
  });
  await chat.sees("The answer is 42.");
  await second.sees("The answer is 42.");
  await context.close();
});

test("stop keeps the partial answer", async ({ page, chat }) => {
  await chat.say("long 5000");
  await chat.sees(/word20 /);
  await chat.stop.click();
  await chat.sees("Stopped. The work so far is saved.");
  await chat.sees(/word20 /);
  await page.reload();
  await chat.sees(/word20 /);
  await chat.sees("Stopped. The work so far is saved.");
});

test("Escape stops the run and leads to the message field also where a tooltip is open", async ({
  page,
  chat,
}) => {
  await chat.say("slow 400");
  await chat.sees(/step 3 of 400/);
  await page.keyboard.press("Shift+Tab"); // so that the next focus counts as by keyboard
  await page.getByRole("button", { name: "Add files" }).focus();
  await expect(page.getByRole("tooltip", { name: "Add files" })).toBeAttached();
  await page.keyboard.press("Escape");
  await expect(page.getByRole("tooltip")).toHaveCount(0);
  await chat.sees("Stopped. The work so far is saved.");
  await page.getByRole("button", { name: "Tools for this chat" }).focus();
  await expect(page.getByRole("tooltip", { name: "Tools for this chat" })).toBeAttached();
  await page.keyboard.press("Shift+Escape");
  await expect(chat.field).toBeFocused();
});

test("Escape stops the run, unless something nearer takes it", async ({ page, chat }) => {
  await chat.say("slow 400");
  await chat.sees(/step 3 of 400/);
  await chat.field.pressSequentially("/");
  await expect(page.getByRole("listbox", { name: "Commands" })).toBeVisible();
  await chat.field.press("Escape");
  await expect(page.getByRole("listbox", { name: "Commands" })).toBeHidden();
  await page.keyboard.press("ControlOrMeta+k");
  await expect(page.getByRole("combobox")).toBeVisible();
  await page.keyboard.press("Escape");
  await expect(page.getByRole("combobox")).toBeHidden();
  await chat.sees(/step 20 of 400/); // neither stopped it
  await chat.field.press("Escape");
  await chat.sees("Stopped. The work so far is saved.");

  await chat.say("slow 400");
  await chat.sees(/step 3 of 400/);
  await chat.log.focus(); // outside of the message field, too
  await page.keyboard.press("Escape");
  await expect(chat.log.getByText("Stopped. The work so far is saved.")).toHaveCount(2);
});

test("a message while it works waits its turn, or is told at once", async ({ page, chat }) => {
  await chat.say("many 25");
  await chat.field.fill("think afterwards");
  await chat.field.press("Enter");
  await expect(page.getByText("1 message queued")).toBeVisible();
  await page.reload();
  await expect(page.getByText("1 message queued")).toBeVisible();
  await chat.field.fill("please be brief");
  await chat.field.press("ControlOrMeta+Enter");
  await chat.sees("please be brief");
  await chat.sees("The answer is 42.");
  await chat.done();
  await expect(page.getByText("1 message queued")).toBeHidden();
});

test("Stop begins nothing: what was to follow stands in the field again", async ({ page, chat }) => {
  await chat.say("slow 400");
  for (const text of ["hello one", "hello two"]) {
    await chat.field.fill(text);
    await chat.field.press("Enter");
    await expect(page.getByRole("listitem").filter({ hasText: text })).toBeVisible();
  }
  await chat.stop.click();
  await chat.sees("Stopped. The work so far is saved.");
  await chat.done();
  await expect(chat.field).toHaveValue("hello one\n\nhello two");
  await expect(chat.log.getByText("hello one")).toBeHidden();
});

test("a waiting message can be taken back", async ({ page, chat }) => {
  await chat.say("slow 400");
  await chat.field.fill("never mind");
  await chat.field.press("Enter");
  await page.getByRole("button", { name: "Don’t send" }).click();
  await expect(page.getByText("1 message queued")).toBeHidden();
  await chat.stop.click();
  await chat.done();
  await expect(chat.log.getByText("never mind")).toBeHidden();
});

test("a message is edited into a branch, and both can be gone back to", async ({ page, chat }) => {
  await chat.ask("first question");
  await chat.ask("think");
  const turn = chat.log.getByText("think", { exact: true });
  await turn.hover();
  await page.getByRole("button", { name: "Edit message" }).last().click();
  const field = page.getByRole("textbox", { name: "Your message" });
  await field.fill("cjk please");
  await field.press("ControlOrMeta+Enter");
  await chat.sees("你好");
  await chat.done();
  await expect(chat.log.getByText("2 / 2")).toBeVisible();
  await page.getByRole("button", { name: "Earlier version" }).click();
  await chat.sees("The answer is 42.");
  await expect(chat.log.getByText("1 / 2")).toBeVisible();
  await page.reload();
  await expect(chat.log.getByText("1 / 2")).toBeVisible();
  await chat.ask("and on from here");
  await page.getByRole("button", { name: "Later version" }).click();
  await chat.sees("你好");
  await expect(chat.log.getByText("and on from here")).toBeHidden();
  await page.getByRole("button", { name: "Earlier version" }).click();
  await chat.sees("and on from here");
});

test("what is written in place of a message stays while another version is shown", async ({ page, chat }) => {
  await chat.ask("think");
  await page.getByRole("button", { name: "Edit message" }).click();
  const field = page.getByRole("textbox", { name: "Your message" });
  await field.fill("half a thought");
  await page.getByRole("button", { name: "Regenerate" }).click();
  await chat.done();
  await expect(field).toHaveValue("half a thought");
  await field.press("Escape");
  await page.getByRole("button", { name: "Edit message" }).click();
  await expect(field).toHaveValue("think");
  await field.press("Escape");
  await page.getByRole("button", { name: "Edit message" }).click();
  await field.fill("cjk please");
  await page
    .getByRole("link", { name: "New chat" })
    .or(page.getByRole("button", { name: "New chat" }))
    .first()
    .click();
  await page.goBack();
  await expect(field).toHaveValue("cjk please");
  await field.press("ControlOrMeta+Enter");
  await chat.sees("你好");
  await expect(chat.log.getByText("3 / 3")).toBeVisible();
});

test("an answer is asked for again", async ({ page, chat }) => {
  await chat.ask("think");
  await page.getByRole("button", { name: "Regenerate" }).click();
  await expect(chat.log.getByText("2 / 2")).toBeVisible();
  await chat.done();
  await chat.sees("The answer is 42.");
});
