import { Chat } from "./chat";
import { addPerson, expect, signIn, test } from "./fixtures";
import { Gateway, PASSWORD } from "./server";

test.describe("a new server", () => {
  test.use({ signedIn: false });

  test("is set up, and the first task can be given at once", async ({ page, model }) => {
    const gateway = await new Gateway(model.url, ["--no-account"]).start();
    try {
      await page.goto(gateway.url);
      await expect(page).toHaveURL(/\/setup/);
      await page.getByLabel("Email").fill("first@example.com");
      await page.getByLabel("Password", { exact: true }).fill("a long enough secret");
      await page.getByRole("button", { name: "Create administrator" }).click();
      await expect(page).toHaveURL(/\/chats/);
      await page.getByRole("textbox", { name: "Message" }).fill("hello");
      await page.keyboard.press("Enter");
      await expect(page.getByText("I am a scripted model")).toBeVisible();
    } finally {
      await gateway.stop();
    }
  });

  test("asks who is there, and goes where one wanted to", async ({ page, gateway }) => {
    await page.goto(`${gateway.url}/settings/about`);
    await expect(page).toHaveURL(/\/login/);
    await page.getByLabel("Email").fill("admin@example.com");
    await page.getByLabel("Password", { exact: true }).fill("wrong password");
    await page.getByRole("button", { name: "Sign in" }).click();
    await expect(page.getByText("Wrong email or password.")).toBeVisible();
    await page.getByLabel("Password", { exact: true }).fill(PASSWORD);
    await page.getByRole("button", { name: "Sign in" }).click();
    await expect(page).toHaveURL(/\/settings\/about/);
  });
});

test("a session that ends in mid-work is renewed without losing the draft", async ({ page, chat }) => {
  await chat.ask("hello");
  await chat.field.fill("an unsent thought");
  await page.context().clearCookies();
  await chat.field.press("Enter");
  const dialog = page
    .getByRole("dialog", { name: "Your session has ended" })
    .or(page.getByRole("alertdialog"));
  await dialog.getByLabel("Password", { exact: true }).fill(PASSWORD);
  await dialog.getByRole("button", { name: "Sign in", exact: true }).click();
  await expect(dialog).toBeHidden();
  await expect(chat.field).toHaveValue("an unsent thought");
  await chat.ask("an unsent thought");
});

test("what one person left unsent is not seen by another on the same browser", async ({
  page,
  chat,
  gateway,
}) => {
  await signIn(page.context(), gateway.url); // this session ends here, and no other test's
  const email = `second-${Date.now()}@example.com`;
  await addPerson(page, gateway.url, email);
  const kept = () => page.evaluate(() => JSON.stringify([{ ...localStorage }, { ...sessionStorage }]));
  await chat.ask("hello");
  await chat.field.fill("a secret of this conversation");
  await expect.poll(kept).toContain("a secret of this conversation");
  await chat.fresh();
  await chat.field.fill("a secret of a new one");
  await expect.poll(kept).toContain("a secret of a new one");
  await page.getByRole("button", { name: "admin@example.com" }).click();
  await page.getByRole("menuitem", { name: "Sign out" }).click();
  await expect(page).toHaveURL(/\/login/);
  expect(await kept()).not.toContain("secret");

  await page.getByLabel("Email").fill(email);
  await page.getByLabel("Password", { exact: true }).fill(PASSWORD);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByLabel("New password").fill("a long enough secret");
  await page.getByRole("button", { name: "Save and start" }).click();
  await expect(page).not.toHaveURL(/\/login/);
  await page.goto(`${gateway.url}/chats`);
  await expect(page.getByRole("button", { name: email })).toBeVisible();
  await expect(chat.field).toHaveValue("");
  await expect(page.getByText("No chats yet")).toBeVisible();
});

test("changing the password ends all other sessions, and not this one; signing out everywhere ends all", async ({
  page,
  browser,
  gateway,
}) => {
  const email = `third-${Date.now()}@example.com`;
  await addPerson(page, gateway.url, email);
  const [here, there] = [await browser.newContext(), await browser.newContext()];
  for (const context of [here, there]) await signIn(context, gateway.url, email);
  const elsewhere = new Chat(await there.newPage());
  await elsewhere.page.goto(`${gateway.url}/chats`);
  await elsewhere.field.fill("still here?");

  const settings = await here.newPage();
  await settings.goto(`${gateway.url}/settings/account`);
  await settings.getByRole("button", { name: "Change password" }).click();
  await settings.getByLabel("Current password", { exact: true }).fill(PASSWORD);
  await settings.getByLabel("New password", { exact: true }).fill("quite another secret");
  await settings.getByRole("dialog").getByRole("button", { name: "Change password" }).click();
  await expect(settings.getByText("Password changed")).toBeVisible();
  await settings.reload();
  await expect(settings.getByText(email).first()).toBeVisible();

  await elsewhere.field.press("Enter");
  const dialog = elsewhere.page.getByRole("dialog", { name: "Your session has ended" });
  await dialog.getByLabel("Password", { exact: true }).fill(PASSWORD);
  await dialog.getByRole("button", { name: "Sign in", exact: true }).click();
  await expect(dialog.getByText("Wrong email or password.")).toBeVisible();
  await dialog.getByLabel("Password", { exact: true }).fill("quite another secret");
  await dialog.getByRole("button", { name: "Sign in", exact: true }).click();
  await expect(dialog).toBeHidden();
  await expect(elsewhere.field).toHaveValue("still here?");

  await settings.getByRole("button", { name: "Sign out everywhere" }).click();
  await expect(settings).toHaveURL(/\/login/);
  await elsewhere.page.reload();
  await expect(elsewhere.page).toHaveURL(/\/login/);
  await Promise.all([here.close(), there.close()]);
});

test("settings: tokens, appearance, language, models, sandbox, about", async ({ page, gateway }) => {
  await page.goto(`${gateway.url}/settings/account`);
  await expect(page.getByText("admin@example.com").first()).toBeVisible();
  await page.goto(`${gateway.url}/settings/models`);
  await expect(page.getByText("Scripted Mini")).toBeVisible();
  await page.getByRole("button", { name: /test/i }).first().click();
  await expect(page.getByText(/Working\. Answered in/)).toBeVisible();
  await page.goto(`${gateway.url}/settings/sandbox`);
  await expect(page.getByText(/bwrap|bubblewrap/i).first()).toBeVisible();
  await page.goto(`${gateway.url}/settings/appearance`);
  await page.getByText("Dark", { exact: true }).first().click();
  await expect(page.locator("html")).toHaveClass(/dark/);
  await page.getByText("中文").first().click();
  await expect(page.locator("html")).toHaveAttribute("lang", "zh-CN");
  await page.goto(`${gateway.url}/chats`);
  await expect(page.getByPlaceholder("今天想做点什么？")).toBeVisible();
});
