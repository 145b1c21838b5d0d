import type { Page } from "@playwright/test";
import { addPerson, expect, signIn, test } from "./fixtures";

const BOTS = "/settings/channels";
const cardOf = (page: Page, name: string) => page.getByRole("listitem", { name, exact: true });

async function add(page: Page, platform: string, values: Record<string, string>) {
  await page.getByRole("button", { name: "Add channel" }).click();
  await page.getByRole("combobox", { name: "Platform" }).click();
  await page.getByRole("option", { name: platform }).click();
  for (const [label, value] of Object.entries(values))
    await page.getByLabel(label, { exact: true }).fill(value);
}

async function close(page: Page) {
  await page.getByRole("dialog").getByRole("button", { name: "Close" }).click();
  await expect(page.getByRole("dialog")).toBeHidden();
}

async function act(page: Page, name: string, what: string) {
  await page.getByRole("button", { name: `Actions for ${name}` }).click();
  await page.getByRole("menuitem", { name: what }).click();
}

test("a channel is added, seen with its state and address, changed, switched off and deleted", async ({
  page,
  gateway,
}) => {
  await page.goto(gateway.url + BOTS);
  await expect(page.getByText("No channels yet")).toBeVisible();
  await add(page, "Webhook", {});
  const confirm = page.getByRole("button", { name: "Add", exact: true });
  await expect(confirm).toBeDisabled();
  await page.getByLabel("Secret").fill(`whsec_${btoa("s".repeat(32))}`);
  await confirm.click();
  const card = cardOf(page, "Webhook");
  await expect(card.getByText("Connected")).toBeVisible();
  await expect(card.getByText(/Receives at http.*\/api\/channels\/bots\/\w+\/events/)).toBeVisible();

  await act(page, "Webhook", "Edit");
  await expect(page.getByLabel("Secret")).toHaveValue("");
  await page.getByLabel("Address for answers (optional)").fill("https://example.org/answers");
  await page.getByRole("button", { name: "Save" }).click();
  await act(page, "Webhook", "Edit");
  await expect(page.getByLabel("Address for answers (optional)")).toHaveValue("https://example.org/answers");
  await close(page);

  await page.getByRole("button", { name: "Connect your account on Webhook" }).click();
  await expect(page.getByText(/^\/connect \w+/)).toBeVisible();
  await close(page);

  const person = await page.context().browser()!.newContext();
  await addPerson(page, gateway.url, "ben@example.org");
  await signIn(person, gateway.url, "ben@example.org");
  const other = await person.newPage();
  await other.goto(gateway.url + BOTS);
  await expect(cardOf(other, "Webhook")).toBeVisible();
  await expect(other.getByRole("button", { name: "Actions for Webhook" })).toHaveCount(0);
  await expect(other.getByText("Receives at")).toHaveCount(0);
  await person.close();

  await page.getByRole("switch", { name: "Use Webhook" }).click();
  await expect(card.getByText("Off")).toBeVisible();
  await act(page, "Webhook", "Delete");
  await page.getByRole("alertdialog").getByRole("button", { name: "Delete" }).click();
  await expect(page.getByText("No channels yet")).toBeVisible();
});

test("a channel that does not get through says why @nightly", async ({ page, gateway }) => {
  await page.goto(gateway.url + BOTS);
  await add(page, "E-mail", {
    Address: "deer@example.org",
    "App password": "p",
    "IMAP server": "127.0.0.1",
    "SMTP server": "127.0.0.1",
    "Server in Authentication-Results": "mx.example.org",
  });
  await page.getByRole("button", { name: "Add", exact: true }).click();
  const card = cardOf(page, "E-mail");
  await expect(card.getByText("Reconnecting…")).toBeVisible();
  await expect(card.getByText(/127\.0\.0\.1/)).toBeVisible();
  await act(page, "E-mail", "Delete");
  await page.getByRole("alertdialog").getByRole("button", { name: "Delete" }).click();
});

test("WeChat is added by scanning a code, and by a new one when the first has expired @nightly", async ({
  page,
  gateway,
}) => {
  const bot = { id: "b", kind: "wechat", title: "WeChat", name: null };
  const states = [
    ["expired"],
    ["waiting"],
    ["scanned"],
    ["needs_code"],
    ["needs_code"],
    ["needs_code"],
    ["confirmed", bot],
  ];
  const asked: Record<string, unknown>[] = [];
  await page.route("**/api/channels/wechat/qr-code", (route) =>
    route.fulfill({ json: { id: "q", server: "https://w.example", content: "https://w.example/q" } }),
  );
  await page.route("**/api/channels/wechat/qr-code/progress", (route) => {
    asked.push(route.request().postDataJSON() as Record<string, unknown>);
    const [state, made = null] = states.shift() ?? ["waiting"];
    return route.fulfill({ json: { state, server: "https://w.example", bot: made } });
  });
  await page.goto(gateway.url + BOTS);
  await add(page, "WeChat", {});
  await page.getByRole("button", { name: "Show QR code" }).click();
  await expect(page.getByText("This code has expired.")).toBeVisible();
  await page.getByRole("button", { name: "New code" }).click();
  await expect(page.getByRole("img", { name: "QR code for WeChat" })).toBeVisible();
  await expect(page.getByText("Scanned. Confirm on your phone.")).toBeVisible();
  await page.getByLabel("Number").fill("42");
  await expect(page.getByText("WeChat is connecting.")).toBeVisible();
  await expect(page.getByRole("dialog")).toBeHidden();
  expect(asked.at(-1)).toMatchObject({ id: "q", own: false, agent: null });
});
