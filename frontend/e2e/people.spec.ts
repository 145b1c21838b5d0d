import { expect, test } from "./fixtures";
import { EMAIL } from "./server";

test("a new member chooses a password and is in the chat; the inviter has a message to send", async ({
  page,
  browser,
  gateway,
}) => {
  const email = `member-${Date.now()}@example.com`;
  await page.goto(`${gateway.url}/settings/users`);
  await page.getByRole("button", { name: "Add a person" }).click();
  await page.getByLabel("Email").fill(email);
  await page.getByRole("button", { name: "Add", exact: true }).click();
  const message = await page.getByLabel("Message", { exact: true }).inputValue();
  expect(message).toContain(gateway.url);
  const password = /Password: (\S+)/.exec(message)![1]!;
  await page.getByRole("button", { name: "Done" }).click();

  const theirs = await (await browser.newContext()).newPage();
  await theirs.goto(gateway.url);
  await theirs.getByLabel("Email").fill(email);
  await theirs.getByLabel("Password", { exact: true }).fill(password);
  await theirs.getByRole("button", { name: "Sign in" }).click();
  await expect(theirs.getByRole("heading", { name: "Choose your password" })).toBeVisible();
  await expect(theirs.getByLabel("New password")).toBeFocused();
  await theirs.getByLabel("New password").fill("a long enough secret");
  await theirs.getByRole("button", { name: "Save and start" }).click();
  await expect(theirs.getByRole("textbox", { name: "Message" })).toBeVisible();

  await page.getByRole("button", { name: `Actions for ${email}` }).click();
  await page.getByRole("menuitem", { name: "Suspend" }).click();
  await page.getByRole("button", { name: "Suspend", exact: true }).click();
  await expect(page.getByText("Suspended", { exact: true })).toBeVisible();
  await theirs.goto(`${gateway.url}/login`);
  await theirs.getByLabel("Email").fill(email);
  await theirs.getByLabel("Password", { exact: true }).fill("a long enough secret");
  await theirs.getByRole("button", { name: "Sign in" }).click();
  await expect(theirs.getByText("This account is suspended.")).toBeVisible();
  await page.getByRole("button", { name: `Actions for ${email}` }).click();
  await page.getByRole("menuitem", { name: "Let in again" }).click();
  await expect(page.getByText("Suspended", { exact: true })).toBeHidden();

  await page.getByLabel("Notice").fill("Maintenance tonight");
  await page.getByRole("button", { name: "Save", exact: true }).click();
  await theirs.getByRole("button", { name: "Sign in" }).click();
  await expect(theirs.getByText("Maintenance tonight")).toBeVisible();
  await theirs.getByRole("button", { name: "Close" }).click();
  await theirs.reload();
  await expect(theirs.getByRole("textbox", { name: "Message" })).toBeVisible();
  await expect(theirs.getByText("Maintenance tonight")).toBeHidden();

  await theirs.goto(`${gateway.url}/settings/account`);
  const saved = theirs.waitForEvent("download");
  await theirs.getByRole("button", { name: "Export" }).click();
  expect((await saved).suggestedFilename()).toMatch(/^deerflow-.*\.zip$/);
  await theirs.getByRole("button", { name: "Delete account" }).click();
  await theirs.getByLabel("Current password").fill("not this one");
  await theirs.getByRole("button", { name: "Delete everything" }).click();
  await expect(theirs.getByText("That isn’t your current password.")).toBeVisible();
  await theirs.getByLabel("Current password").fill("a long enough secret");
  await theirs.getByRole("button", { name: "Delete everything" }).click();
  await expect(theirs).toHaveURL(/\/login/);
  await page.reload();
  await expect(page.getByText(EMAIL).first()).toBeVisible();
  await expect(page.getByText(email)).toBeHidden();
});

test("the only administrator learns why the account stays", async ({ browser, gateway, session }) => {
  const context = await browser.newContext();
  await session.enter(context);
  const page = await context.newPage();
  await page.goto(`${gateway.url}/settings/account`);
  await page.getByRole("button", { name: "Delete account" }).click();
  await page.getByLabel("Current password").fill("deerflow-2026");
  await page.getByRole("button", { name: "Delete everything" }).click();
  await expect(page.getByText("You’re the only administrator.")).toBeVisible();
});
