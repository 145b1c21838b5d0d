import { readFileSync } from "node:fs";
import type { Page } from "@playwright/test";
import { expect, signIn, test } from "./fixtures";

/** A person may use 50,000 tokens a day. */
test.use({ flags: ["--daily-tokens", "50000"] });

/** A person beside the administrator, and a browser in which they are signed in. */
async function addPerson(page: Page, url: string, email: string) {
  const csrf = (await page.context().cookies()).find(({ name }) => name === "csrf_token")?.value ?? "";
  const headers = { "X-CSRF-Token": csrf, Origin: url };
  const made = await page.request.post(`${url}/api/v1/users`, { headers, data: { email } });
  const { password } = (await made.json()) as { password: string };
  const context = await page.context().browser()!.newContext();
  await signIn(context, url, email, password);
  return context.newPage();
}

test("people see what their runs used, by day, model and agent, and take it along", async ({
  page,
  chat,
  gateway,
}) => {
  await page.goto(`${gateway.url}/settings/usage`);
  await expect(page.getByText("Nothing used in this period")).toBeVisible();
  await page.goto(`${gateway.url}/chats`);
  await chat.ask("hello");
  await chat.sees(/tokens · \$/);
  await page.goto(`${gateway.url}/settings/usage`);

  const sums = page.getByRole("definition");
  await expect(sums.first()).toHaveText(/^\$0\.\d+$/);
  const table = page.getByRole("region", { name: "Usage: Day" });
  await expect(table.getByRole("columnheader", { name: "Input tokens" })).toBeVisible();
  await expect(table.getByRole("row")).toHaveCount(3);
  await expect(table.getByRole("row", { name: /^Total/ })).toContainText(/4,\d{3}/); // title and suggestions count, too

  const meter = page.getByRole("meter", { name: "You, today" });
  await expect(meter).toHaveAttribute("aria-valuemax", "50000");
  expect(Number(await meter.getAttribute("aria-valuenow"))).toBeGreaterThanOrEqual(4380);
  await expect(page.getByText("Per turn")).toBeVisible();

  await page.getByRole("radio", { name: "Agent" }).click();
  await expect(page.getByRole("rowheader", { name: "DeerFlow" })).toBeVisible();
  await page.getByRole("radio", { name: "Model" }).click();
  await expect(page.getByRole("rowheader", { name: "scripted" })).toBeVisible();
  const download = page.waitForEvent("download");
  await page.getByRole("button", { name: "Download CSV" }).click();
  const file = await download;
  expect(file.suggestedFilename()).toMatch(/^deerflow-usage-model-[\d-]+\.csv$/);
  const text = readFileSync(await file.path(), "utf8");
  expect(text.startsWith("\ufeff"), "spreadsheets must see that it is UTF-8").toBe(true);
  const lines = text.slice(1).split("\r\n");
  expect(lines[0]).toBe(
    "model,calls,input_tokens,cached_tokens,output_tokens,total_tokens,unpriced_calls,estimated_calls,cost_USD",
  );
  expect(lines[1]).toMatch(/^scripted,\d+,4\d{3},0,\d{3},\d{4},0,0,0\.0\d+$/);

  await page.getByRole("radio", { name: "7 days" }).click();
  await expect(page.getByRole("rowheader", { name: "scripted" })).toBeVisible();
});

test(
  "administrators see those of all and of each person; others only their own",
  { tag: "@nightly" },
  async ({ page, chat, gateway }) => {
    await chat.ask("hello");
    await chat.sees(/tokens · \$/);
    const other = await addPerson(page, gateway.url, "anna@example.com");
    await other.goto(`${gateway.url}/settings/usage`);
    await expect(other.getByText("Nothing used in this period")).toBeVisible();
    await expect(other.getByRole("combobox", { name: "Whose usage" })).toHaveCount(0);

    await page.goto(`${gateway.url}/settings/usage`);
    const whose = page.getByRole("combobox", { name: "Whose usage" });
    await whose.click();
    await page.getByRole("option", { name: "Everyone" }).click();
    await page.getByRole("radio", { name: "Person" }).click();
    await expect(page.getByRole("rowheader", { name: "admin@example.com" })).toBeVisible();
    await whose.click();
    await page.getByRole("option", { name: "anna@example.com" }).click();
    await expect(page.getByText("Nothing used in this period")).toBeVisible();
    await other.context().close();
  },
);
