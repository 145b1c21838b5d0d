import { mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Page } from "@playwright/test";
import { addPerson, expect, signIn, test } from "./fixtures";
import { Session } from "./session";
import { freePort, Gateway, Process, PYTHON, ROOT } from "./server";

const SERVER = join(ROOT, "tests/harness/mcp/server.py");
const SECRET = "t0p-secret-of-the-shop";

/** A server over the official SDK, by HTTP. `oauth`: with an authorization server in front of it. */
async function serve(kind: "http" | "oauth") {
  const process = new Process([SERVER, kind, String(await freePort())]);
  return { process, url: `${await process.start()}/mcp` };
}

const cardOf = (page: Page, name: string) => page.getByRole("listitem", { name, exact: true });

async function act(page: Page, name: string, what: string) {
  await page.getByRole("button", { name: `Actions for ${name}` }).click();
  await page.getByRole("menuitem", { name: what }).click();
}

test.describe.configure({ mode: "serial" });

let gateway: Gateway;
let session: Session;
let shop: Awaited<ReturnType<typeof serve>>;
let tickets: Awaited<ReturnType<typeof serve>>;
const file = join(mkdtempSync(join(tmpdir(), "deerflow-mcp-")), "extensions_config.json");
const kept = () =>
  (JSON.parse(readFileSync(file, "utf8")) as { mcpServers: Record<string, Record<string, unknown>> })
    .mcpServers;

test.beforeAll(async ({ model }) => {
  test.setTimeout(120_000);
  const local = { command: PYTHON, args: [SERVER], isolation: "host", description: "Of this machine." };
  writeFileSync(file, JSON.stringify({ mcpServers: { local } }));
  [shop, tickets] = await Promise.all([serve("http"), serve("oauth")]);
  gateway = await new Gateway(model.url, [], { DEER_FLOW_EXTENSIONS_CONFIG_PATH: file }).start();
  session = new Session(gateway.url);
});

test.afterAll(async () => {
  await gateway.stop();
  await Promise.all([shop, tickets].map(({ process }) => process.end("SIGKILL")));
});

test.use({ signedIn: false });

test.beforeEach(async ({ page }) => {
  await session.enter(page.context());
  await page.goto(`${gateway.url}/settings/mcp`);
});

test("a server is seen with its state, reach, tools and log; its tools are switched and guarded", async ({
  page,
}) => {
  const card = cardOf(page, "local");
  await expect(card.getByText("Running")).toBeVisible({ timeout: 30_000 });
  await expect(card.getByText("No sandbox: runs with all rights")).toBeVisible();
  await card.getByRole("button", { name: /\d+ tools/ }).click();
  const echo = card.getByRole("listitem").filter({ hasText: "Says it again." });
  await expect(echo.getByText("Read-only")).toBeVisible();

  await card.getByRole("switch", { name: "Use the tool die" }).click();
  await expect.poll(() => kept().local?.tools).toEqual({ die: { enabled: false } });
  await expect(card.getByRole("switch", { name: "Use the tool die" })).not.toBeChecked();
  await echo.getByRole("combobox", { name: "When echo is used" }).click();
  await page.getByRole("option", { name: "Always ask" }).click();
  await expect.poll(() => kept().local?.tools).toEqual({ die: { enabled: false }, echo: { policy: "ask" } });
  await page.reload();
  await card.getByRole("button", { name: /\d+ tools/ }).click();
  await expect(card.getByRole("switch", { name: "Use the tool die" })).not.toBeChecked();
  await expect(echo.getByRole("combobox")).toHaveText("Always ask");

  await act(page, "local", "Show log");
  const log = page.getByRole("dialog", { name: "Log of local" });
  await expect(log.getByText("the server speaks to its log").first()).toBeVisible();
  await page.keyboard.press("Escape");
  await act(page, "local", "Restart");
  await expect(page.getByText("local is running.")).toBeVisible();

  await page.getByRole("switch", { name: "Use local" }).click();
  await expect(card.getByText("Off", { exact: true })).toBeVisible();
  await expect.poll(() => kept().local?.enabled).toBe(false);
  await page.getByRole("switch", { name: "Use local" }).click();
  await expect(card.getByText("Running")).toBeVisible({ timeout: 30_000 });

  await page.goto(`${gateway.url}/chats`);
  const field = page.getByRole("textbox", { name: "Message", exact: true });
  await field.fill("/local:gr");
  await page.getByRole("option", { name: /^\/local:greet/ }).click();
  await expect(field).toHaveValue("/local:greet ");
});

test("a server is added by the form, tested before; its secret is kept and never shown", async ({ page }) => {
  await page.getByRole("button", { name: "Add server" }).click();
  const dialog = page.getByRole("dialog", { name: "Add an MCP server" });
  await expect(dialog.getByRole("button", { name: "Add server" })).toBeDisabled();
  await dialog.getByLabel("Name", { exact: true }).fill("shop");
  await dialog.getByRole("combobox", { name: "Type" }).click();
  await page.getByRole("option", { name: "HTTP", exact: true }).click();
  await dialog.getByLabel("Address").fill("http://127.0.0.1:9/mcp");
  await dialog.getByRole("button", { name: "Test", exact: true }).click();
  await expect(dialog.getByText(/^Doesn’t work\./)).toBeVisible({ timeout: 30_000 });
  await dialog.getByLabel("Address").fill(shop.url);
  await dialog.getByRole("button", { name: "Headers: Add" }).click();
  await dialog.getByLabel("Headers: Name 1").fill("X-Key");
  await dialog.getByLabel("Headers: Value 1").fill(SECRET);
  await dialog.getByRole("button", { name: "Test", exact: true }).click();
  await expect(dialog.getByText(/^Works: \d+ tools/)).toBeVisible({ timeout: 30_000 });
  expect(kept().shop).toBeUndefined();
  await dialog.getByRole("button", { name: "Add server" }).click();
  await expect(dialog).toBeHidden({ timeout: 30_000 });
  await expect(cardOf(page, "shop").getByText("Running")).toBeVisible({ timeout: 30_000 });

  await page.reload();
  await act(page, "shop", "Edit");
  const edit = page.getByRole("dialog", { name: "Edit shop" });
  await expect(edit.getByLabel("Headers: Value 1")).toHaveValue("********");
  await edit.getByLabel("Description").fill("Orders and stock.");
  await edit.getByText("JSON", { exact: true }).click();
  await expect(edit.getByLabel("Configuration")).toHaveValue(/Orders and stock/);
  expect(await page.content()).not.toContain(SECRET);
  await edit.getByRole("button", { name: "Save" }).click();
  await expect(cardOf(page, "shop").getByText("Orders and stock.")).toBeVisible({ timeout: 30_000 });
  expect(kept().shop).toMatchObject({ headers: { "X-Key": SECRET }, description: "Orders and stock." });
});

test("servers are pasted as JSON, what is wrong is named, a broken one says why, and it is deleted", async ({
  page,
}) => {
  await page.getByRole("button", { name: "Add server" }).click();
  const dialog = page.getByRole("dialog", { name: "Add an MCP server" });
  await dialog.getByText("Paste JSON").click();
  const text = dialog.getByLabel("Configuration");
  const add = dialog.getByRole("button", { name: "Add server" });
  for (const [given, problem] of [
    ["{", "This isn’t valid JSON"],
    ['{"mcpServers": {}}', "There are no servers in it"],
    ['{"mcpServers": {"broken": {"args": []}}}', "“broken” has neither a command nor a url"],
    ['{"mcpServers": {"local": {"command": "x"}}}', "There already is a server called “local”"],
  ] as const) {
    await text.fill(given);
    await expect(dialog.getByRole("alert").filter({ hasText: problem })).toBeVisible();
    await expect(add).toBeDisabled();
  }
  const broken = { command: "cat", args: ["/not-there"] };
  await text.fill(JSON.stringify({ mcpServers: { broken, spare: { url: shop.url, disabled: true } } }));
  await add.click();
  await expect(page.getByText("2 servers added.")).toBeVisible({ timeout: 60_000 });
  const card = cardOf(page, "broken");
  await expect(card.getByText("Not working")).toBeVisible({ timeout: 60_000 });
  await expect(card.getByText("Runs in its own sandbox · internet access")).toBeVisible();
  await expect(card.getByText(/exit code 1/)).toBeVisible();
  await card.getByRole("button", { name: "Show log" }).click();
  await expect(
    page
      .getByRole("dialog")
      .getByText(/\/not-there/)
      .first(),
  ).toBeVisible();
  await page.keyboard.press("Escape");
  await expect(cardOf(page, "spare").getByText("Off", { exact: true })).toBeVisible();

  for (const name of ["broken", "spare"]) {
    await act(page, name, "Delete");
    await page.getByRole("alertdialog").getByRole("button", { name: "Delete" }).click();
    await expect(page.getByText(`${name} was deleted.`)).toBeVisible({ timeout: 30_000 });
    await expect(cardOf(page, name)).toBeHidden();
  }
  await expect.poll(() => Object.keys(kept())).toEqual(["local", "shop"]);
});

test("each person connects a server of their own by OAuth, and leaves it again @nightly", async ({
  page,
  browser,
}) => {
  await page.getByRole("button", { name: "Add server" }).click();
  const dialog = page.getByRole("dialog", { name: "Add an MCP server" });
  await dialog.getByLabel("Name", { exact: true }).fill("tickets");
  await dialog.getByRole("combobox", { name: "Type" }).click();
  await page.getByRole("option", { name: "HTTP", exact: true }).click();
  await dialog.getByLabel("Address").fill(tickets.url);
  await dialog.getByRole("combobox", { name: "Sign-in" }).click();
  await page.getByRole("option", { name: "Each person connects their own account" }).click();
  await dialog.getByRole("button", { name: "Add server" }).click();
  await expect(cardOf(page, "tickets").getByText("Not connected")).toBeVisible({ timeout: 30_000 });

  const email = `member-${Date.now()}@example.com`;
  await addPerson(page, gateway.url, email);
  const context = await browser.newContext({
    viewport: { width: 390, height: 844 },
    hasTouch: true,
    isMobile: true,
  });
  await signIn(context, gateway.url, email);
  const phone = await context.newPage();
  await phone.goto(`${gateway.url}/settings/mcp`);
  const card = cardOf(phone, "tickets");
  await expect(phone.getByRole("button", { name: "Add server" })).toHaveCount(0);
  await expect(phone.getByRole("switch")).toHaveCount(0);
  // At the authorization server they say no …
  await card.getByRole("button", { name: "Connect tickets" }).click();
  await expect(phone.getByRole("heading", { name: "Not connected" })).toBeVisible();
  await phone.getByRole("link", { name: "Back to the settings" }).click();
  await expect(card.getByText("Not connected")).toBeVisible();
  // … and then yes.
  await context.setExtraHTTPHeaders({ "x-person": "ada" });
  await card.getByRole("button", { name: "Connect tickets" }).click();
  await expect(phone).toHaveURL(/\/settings\/mcp$/);
  await expect(card.getByText("Connected", { exact: true })).toBeVisible({ timeout: 30_000 });
  await card.getByRole("button", { name: /\d+ tools/ }).click();
  await expect(card.getByText("whoami", { exact: true })).toBeVisible();
  expect(await phone.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(390);
  await page.reload();
  await expect(cardOf(page, "tickets").getByText("Not connected")).toBeVisible();
  await card.getByRole("button", { name: "Disconnect tickets" }).click();
  await expect(card.getByText("Not connected")).toBeVisible({ timeout: 30_000 });
  await context.close();
});

test("everything works with keys alone, and the focus is kept", { tag: "@nightly" }, async ({ page }) => {
  await page.getByRole("button", { name: "Add server" }).focus();
  await page.keyboard.press("Enter");
  const dialog = page.getByRole("dialog", { name: "Add an MCP server" });
  await expect(dialog.getByLabel("Name", { exact: true })).toBeFocused();
  await page.keyboard.type("typed");
  await dialog.getByLabel("Command").focus();
  await page.keyboard.type("cat");
  await page.keyboard.press("Escape");
  await expect(dialog).toBeHidden();
  await expect(page.getByRole("button", { name: "Add server" })).toBeFocused();
  const more = page.getByRole("button", { name: "Actions for shop" });
  await more.focus();
  await page.keyboard.press("Enter");
  await expect(page.getByRole("menuitem").first()).toBeFocused();
  await page.keyboard.press("End");
  await expect(page.getByRole("menuitem", { name: "Delete" })).toBeFocused();
  await page.keyboard.press("Enter");
  await expect(page.getByRole("alertdialog")).toBeVisible();
  await page.keyboard.press("Escape");
  await expect(more).toBeFocused();
  expect(kept().typed).toBeUndefined();
});
