import type { Page } from "@playwright/test";
import { expect, signIn, test } from "./fixtures";
import { Gateway } from "./server";

async function makeNew(page: Page, how: string, name: string, id?: string) {
  await page.getByRole("button", { name: "New agent" }).click();
  await page.getByRole("menuitem", { name: how }).click();
  const dialog = page.getByRole("dialog", { name: "New agent" });
  await dialog.getByLabel("Name").fill(name);
  if (id) await dialog.getByLabel("ID").fill(id);
  await dialog.getByRole("button", { name: /Create|Start the chat/ }).click();
  return dialog;
}

async function remove(page: Page, name: string) {
  await page.getByRole("button", { name: `Delete ${name}` }).click();
  await page.getByRole("alertdialog").getByRole("button", { name: "Delete" }).click();
  await expect(page.getByRole("heading", { name: "Your agents" })).toBeVisible();
  await expect(page.getByRole("link", { name, exact: true })).toHaveCount(0);
}

test("an agent is made with a form, set up, changed, undone, talked to, and deleted", async ({
  page,
  chat,
  gateway,
}) => {
  await page.goto(`${gateway.url}/settings/agents`);
  await expect(page.getByText("No agents of your own yet")).toBeVisible();
  const dialog = await makeNew(page, "Fill in a form…", "editor", "no!");
  await expect(dialog.getByRole("alert")).toContainText("letters from a to z, digits");
  await dialog.getByLabel("ID").fill("editor");
  await dialog.getByLabel("What it does").fill("Shortens texts");
  await dialog.getByRole("button", { name: "Create" }).click();
  await expect(page.getByRole("heading", { name: "editor", exact: true })).toBeFocused();

  await page.getByLabel("SOUL.md", { exact: true }).fill("You **never** use adverbs.");
  await page.getByRole("radio", { name: "Preview" }).click();
  await expect(page.getByText("You never use adverbs.")).toBeVisible();
  await page.getByRole("button", { name: "Save" }).click();
  await expect(page.getByText("Saved. Takes effect")).toBeVisible();

  await page.getByRole("tab", { name: "Settings" }).click();
  for (const [label, option] of [
    ["Model", "Scripted Mini"],
    ["Thinking", "Off"],
    ["Thinking effort", "Low"],
    ["Approvals", "Whenever a call leaves the sandbox"],
  ] as const) {
    await page.getByRole("combobox", { name: label, exact: true }).click();
    await page.getByRole("option", { name: option }).click();
  }
  const choose = (label: string) =>
    page.getByRole("radiogroup", { name: label }).getByRole("radio", { name: "Choose" });
  await choose("Skills").click();
  await page.getByRole("checkbox", { name: /^pdf/ }).click();
  await choose("Subagents").click();
  await page.getByRole("checkbox", { name: "bash" }).click();
  await page.getByLabel("Tokens per day").fill("500000");
  await page.getByLabel("Cost per day").fill("1.5");
  await page.getByRole("combobox", { name: "At the limit" }).click();
  await page.getByRole("option", { name: "Finish with a last answer" }).click();
  const answer = page.waitForResponse((one) => one.request().method() === "PUT");
  await page.getByRole("button", { name: "Save" }).click();
  expect(await (await answer).json()).toMatchObject({
    soul: "You **never** use adverbs.",
    model: "scripted-mini",
    thinking_enabled: false,
    reasoning_effort: "low",
    policy: "strict",
    skills: ["pdf"],
    subagents: ["bash"],
    tool_groups: null,
    budget: { tokens: 500_000, money: 1.5, at_limit: "stop" },
  });

  await page.getByRole("tab", { name: "Versions" }).click();
  const versions = page.getByRole("tabpanel").getByRole("listitem");
  await expect(versions).toHaveCount(3);
  await expect(versions.first().getByRole("figure")).toContainText("model: scripted-mini");
  await versions.nth(1).getByRole("button", { name: "Restore" }).click();
  await expect(versions.nth(1)).toContainText("Current");
  await page.getByRole("tab", { name: "Settings" }).click();
  await expect(page.getByRole("combobox", { name: "Model", exact: true })).toContainText(
    "As chosen in the chat",
  );

  await page.getByRole("button", { name: "Chat with editor" }).click();
  await expect(page.getByRole("button", { name: /^Agent: *editor/ })).toBeVisible();
  await chat.ask("hello");
  const thread = new URL(page.url()).pathname;
  await page.getByRole("button", { name: /^Agent:/ }).click();
  await page.getByRole("menuitem", { name: "Your agents" }).click();
  await page.getByRole("link", { name: "editor", exact: true }).click();
  await page.getByRole("tab", { name: "Chats" }).click();
  const chats = page.getByRole("list", { name: "Chats with editor" }).getByRole("link");
  await expect(chats).toHaveCount(1);
  await expect(chats).toHaveAttribute("href", thread);
  await page.getByRole("link", { name: "Memory" }).last().click();
  await expect(page.getByRole("combobox", { name: "Memory of" })).toContainText("editor");
  await page.goBack();
  await remove(page, "editor");
});

test("an agent is made in a conversation, and can be talked to at once", async ({ page, chat, gateway }) => {
  await page.goto(`${gateway.url}/settings/agents`);
  await makeNew(page, "Set up in a chat…", "poet");
  await expect(page.getByRole("button", { name: /^Agent: *poet/ })).toBeVisible();
  await expect(chat.field).toHaveValue(/Let’s set up this agent/);
  await chat.ask("setup You rhyme.");
  await chat.sees("Your agent is ready.");
  await page.goto(`${gateway.url}/settings/agents`);
  const dialog = await makeNew(page, "Set up in a chat…", "Poet");
  await expect(dialog.getByRole("alert")).toContainText("There is already an agent with the ID poet.");
  await page.keyboard.press("Escape");
  await page.getByRole("link", { name: "poet", exact: true }).click();
  await expect(page.getByLabel("SOUL.md", { exact: true })).toHaveValue("# Manner\n\nYou rhyme.");
  await page.getByRole("tab", { name: "Versions" }).click();
  await expect(page.getByRole("tabpanel")).toContainText("by an agent");
  await page.getByRole("link", { name: "from a chat" }).click();
  await chat.sees("Your agent is ready.");
  await page.goto(`${gateway.url}/settings/agents?name=poet`);
  await remove(page, "poet");
});

test("an agent has a name in any script, and an id beside it @nightly", async ({ page, chat, gateway }) => {
  await page.goto(`${gateway.url}/settings/agents`);
  await makeNew(page, "Fill in a form…", "研究员");
  await expect(page.getByRole("heading", { name: "研究员", exact: true })).toBeFocused();
  await expect(page).toHaveURL(/name=my-agent$/);
  await page.getByRole("tab", { name: "Settings" }).click();
  await page.getByLabel("Name").fill("Éva 研究员");
  await page.getByRole("button", { name: "Save" }).click();
  await expect(page.getByRole("heading", { name: "Éva 研究员", exact: true })).toBeVisible();
  await page.getByRole("button", { name: "Chat with Éva 研究员" }).click();
  await expect(page.getByRole("button", { name: /^Agent: *Éva 研究员/ })).toBeVisible();
  await chat.ask("hello");
  await page.goto(`${gateway.url}/settings/agents`);
  const dialog = await makeNew(page, "Set up in a chat…", "诗人");
  await expect(dialog).toBeHidden();
  await expect(page.getByRole("button", { name: /^Agent: *my-agent-2/ })).toBeVisible();
  await expect(chat.field).toHaveValue(/set up the agent “诗人”/);
  await page.goto(`${gateway.url}/settings/agents?name=my-agent`);
  await remove(page, "Éva 研究员");
});

test("USER.md is written for all agents, and what is too long is not sent", async ({ page, gateway }) => {
  await page.goto(`${gateway.url}/settings/instructions`);
  const text = page.getByLabel("USER.md", { exact: true });
  await text.fill("x".repeat(20_001));
  await expect(page.getByRole("button", { name: "Save" })).toBeDisabled();
  await text.fill("I am a nurse in Oslo.");
  await page.getByRole("button", { name: "Save" }).click();
  await expect(page.getByRole("button", { name: "Save" })).toBeDisabled();
  await page.reload();
  await expect(text).toHaveValue("I am a nurse in Oslo.");
});

test("where the server has switched agents off, the page says so @nightly", async ({ page, model }) => {
  const closed = await new Gateway(model.url, ["--no-agents"]).start();
  await signIn(page.context(), closed.url);
  await page.goto(`${closed.url}/settings/agents`);
  await expect(page.getByText("agents_api.enabled")).toBeVisible();
  await expect(page.getByRole("button", { name: "New agent" })).toHaveCount(0);
  await closed.stop();
});
