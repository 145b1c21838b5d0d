import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { Chat } from "./chat";
import { addPerson, expect, signIn, test } from "./fixtures";
import { Gateway, Model, Process } from "./server";

const KEY = "sk-e2e-0123456789";

/** A provider with models, which refuses other keys. */
async function provider() {
  const options = ["--port", "0", "--api-key", KEY, "--model", "big", "--model", "small"];
  const process = new Process(["-m", "bench.scripted_openai", ...options]);
  const address = new URL(await process.start());
  return { process, url: `${address.origin}/v1` };
}

/** A SearXNG that finds one page for everything. */
async function searxng() {
  const asked: string[] = [];
  const server = createServer((request, answer) => {
    asked.push(request.url ?? "");
    const results = [
      { title: "Deer of the wood", url: "https://example.org/deer", content: "They eat grass." },
    ];
    answer.setHeader("Content-Type", "application/json").end(JSON.stringify({ results }));
  });
  await new Promise<void>((ready) => server.listen(0, "127.0.0.1", ready));
  return { server, asked, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` };
}

test.use({ signedIn: false });

test("someone who has never seen it watches the demo, and has a real model and a search 90 seconds later", async ({
  page,
}, info) => {
  test.setTimeout(180_000);
  const { process, url } = await provider();
  const search = await searxng();
  const gateway = await new Gateway(url, ["--no-account", "--no-model"]).start();
  const chat = new Chat(page);
  try {
    await page.goto(gateway.url);
    await page.getByLabel("Email").fill("first@example.com");
    await page.getByLabel("Password", { exact: true }).fill("a long enough secret");
    const began = Date.now();
    await page.getByRole("button", { name: "Create administrator" }).click();
    await page.getByRole("button", { name: "Watch the demo" }).click();
    // Where the demo ends it leads on.
    const onward = page.getByRole("log").getByRole("link", { name: "Settings → Models" }).last();
    await expect(onward).toBeVisible({ timeout: 60_000 });
    await chat.done();
    await onward.click();
    await expect(page).toHaveURL(/\/settings\/models$/);

    await page.getByRole("combobox", { name: "Provider" }).click();
    await page.getByRole("option", { name: /^Other/ }).click();
    await page.getByLabel("Address").fill(url);
    await page.getByLabel(/^API key/).fill(KEY);
    await page.getByRole("button", { name: "Show models" }).click();
    await page.getByRole("button", { name: "Connect", exact: true }).click();
    await expect(page.getByRole("heading", { name: "big" })).toBeVisible();

    const group = page.getByRole("region", { name: "Web search" });
    await expect(group.getByText("DuckDuckGo")).toBeVisible();
    await group.getByRole("button", { name: "Change" }).click();
    await group.getByRole("combobox", { name: "Provider" }).click();
    await page.getByRole("option", { name: "SearXNG" }).click();
    await group.getByLabel("Address").fill(search.url);
    await group.getByRole("button", { name: "Test", exact: true }).click();
    await expect(group.getByText("“Deer of the wood”")).toBeVisible();
    await group.getByRole("button", { name: "Connect", exact: true }).click();
    await expect(group.getByText(search.url)).toBeVisible();
    expect(search.asked.at(-1)).toContain("/search?q=");

    await page.getByRole("link", { name: "Back to chat" }).click();
    await chat.say("Hello");
    await expect(chat.log.getByText(/tok\d\d/).last()).toBeVisible();
    const seconds = (Date.now() - began) / 1000;
    info.annotations.push({ type: "seconds to an answer", description: String(seconds) });
    expect(seconds).toBeLessThan(90);

    await page.goto(`${gateway.url}/settings/models`);
    await page.getByRole("button", { name: "Disconnect: SearXNG" }).click();
    await page.getByRole("alertdialog").getByRole("button", { name: "Disconnect" }).click();
    await expect(group.getByText("DuckDuckGo")).toBeVisible();
  } finally {
    await gateway.stop();
    search.server.close();
    await process.end("SIGKILL");
  }
});

test("from a new server to an answer of a real model, without a terminal @nightly", async ({
  page,
}, info) => {
  test.setTimeout(120_000);
  const { process, url } = await provider();
  const began = Date.now();
  const gateway = await new Gateway(url, ["--no-account", "--no-model"]).start();
  try {
    await page.goto(gateway.url);
    await page.getByLabel("Email").fill("first@example.com");
    await page.getByLabel("Password", { exact: true }).fill("a long enough secret");
    await page.getByRole("button", { name: "Create administrator" }).click();
    await page.getByRole("link", { name: "Connect a model" }).click();

    await page.getByRole("combobox", { name: "Provider" }).click();
    await page.getByRole("option", { name: /^Other/ }).click();
    await page.getByLabel("Address").fill(url);
    await page.getByRole("button", { name: "Show models" }).click();
    await expect(
      page.getByRole("alert").filter({ hasText: "This server asks for an API key" }),
    ).toBeVisible();
    await page.getByLabel(/^API key/).fill("sk-of-someone-else");
    await page.getByRole("button", { name: "Show models" }).click();
    await expect(page.getByRole("alert").filter({ hasText: "The key was refused" })).toBeVisible();
    await page.getByLabel(/^API key/).fill(KEY);
    await page.keyboard.press("Enter");
    await expect(page.getByRole("checkbox", { name: "big" })).toBeChecked();
    await page.getByRole("checkbox", { name: "small" }).check();
    await page.getByRole("button", { name: "Test", exact: true }).first().click();
    await expect(page.getByText(/^Working\./)).toBeVisible();
    await page.getByRole("button", { name: "Connect", exact: true }).click();
    await expect(page.getByRole("heading", { name: "big" })).toBeVisible();
    await expect(page.getByRole("heading", { name: "small" })).toBeVisible();
    await expect(page.getByText("Encrypted", { exact: true })).toBeVisible();
    expect(await page.content()).not.toContain(KEY);

    await expect(page.getByText("Connected · 2 models")).toBeVisible();
    await expect(page.getByRole("link", { name: "Start a chat" })).toBeFocused();
    await page.keyboard.press("Enter");
    const field = page.getByRole("textbox", { name: "Message", exact: true });
    await field.fill("Hello");
    await field.press("Enter");
    await expect(
      page
        .getByRole("log")
        .getByText(/tok\d\d/)
        .last(),
    ).toBeVisible();
    info.annotations.push({ type: "seconds to an answer", description: `${(Date.now() - began) / 1000}` });

    await page.goto(`${gateway.url}/settings/models`);
    await page.getByRole("button", { name: /^Disconnect/ }).click();
    await page.getByRole("alertdialog").getByRole("button", { name: "Disconnect" }).click();
    await expect(page.getByText("Only the demo model is available")).toBeVisible();
  } finally {
    await gateway.stop();
    await process.end("SIGKILL");
  }
});

test("a server without a key keeps none, and members learn who connects models @nightly", async ({
  page,
  browser,
}) => {
  const model = await new Model().start();
  const gateway = await new Gateway(model.url, ["--no-model"]).start();
  const other = await browser.newContext();
  try {
    await signIn(page.context(), gateway.url);
    await page.goto(`${gateway.url}/settings/models`);
    await addPerson(page, gateway.url, "member@example.com");
    await signIn(other, gateway.url, "member@example.com");
    const member = await other.newPage();
    await member.goto(`${gateway.url}/settings/models`);
    await expect(member.getByText(/An administrator can connect a real model/)).toBeVisible();
    await expect(member.getByText("Set an API key")).toHaveCount(0);

    await page.getByRole("combobox", { name: "Provider" }).click();
    await page.getByRole("option", { name: /^Other/ }).click();
    await page.getByLabel("Address").fill(model.url);
    await page.getByRole("button", { name: "Show models" }).click();
    const connect = page.getByRole("button", { name: "Connect", exact: true });
    await expect(connect).toBeVisible();
    await expect(page.getByText("Save the key")).toHaveCount(0);
    await connect.click();
    await expect(page.getByRole("button", { name: /^Disconnect: / })).toBeVisible();
    await expect(page.getByText("Encrypted", { exact: true })).toHaveCount(0);

    await member.reload();
    await expect(member.getByRole("button", { name: /^Test: / }).first()).toBeVisible();
    await expect(member.getByText("Connect another model")).toHaveCount(0);
  } finally {
    await other.close();
    await gateway.stop();
    await model.stop();
  }
});
