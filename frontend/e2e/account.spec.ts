import { expect, test } from "./fixtures";
import { Gateway, PASSWORD } from "./server";

test.describe("a new server", () => {
  test.use({ signedIn: false });

  test("is set up, and the first task can be given at once", async ({ page, model }) => {
    const gateway = await new Gateway(model.url, ["--no-account"]).start();
    try {
      await page.goto(gateway.url);
      await expect(page).toHaveURL(/\/setup/);
      await page.getByLabel("E-mail").fill("first@example.com");
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
    await page.getByLabel("E-mail").fill("admin@example.com");
    await page.getByLabel("Password", { exact: true }).fill("wrong password");
    await page.getByRole("button", { name: "Sign in" }).click();
    await expect(page.getByText("E-mail or password is not right.")).toBeVisible();
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

test("settings: tokens, appearance, language, models, sandbox, about", async ({ page, gateway }) => {
  await page.goto(`${gateway.url}/settings/account`);
  await expect(page.getByText("admin@example.com").first()).toBeVisible();
  await page.goto(`${gateway.url}/settings/models`);
  await expect(page.getByText("Scripted Mini")).toBeVisible();
  await page.getByRole("button", { name: /test/i }).first().click();
  await expect(page.getByText(/It answers, in/)).toBeVisible();
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
