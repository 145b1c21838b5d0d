import { call } from "./call";
import { expect, test } from "./fixtures";

test("tools of a chat are switched off before and after its first message, and stay so", async ({
  page,
  chat,
  gateway,
}) => {
  const tools = page.getByRole("button", { name: /^Tools for this chat/ });
  const menu = page.getByRole("dialog", { name: "Tools for this chat" });
  await tools.click();
  await menu.getByRole("switch", { name: "Web search" }).click();
  await page.keyboard.press("Escape");
  await expect(tools).toHaveAccessibleName("Tools for this chat: 1 off");
  await chat.ask("hello there");
  await expect(tools).toHaveAccessibleName("Tools for this chat: 1 off");
  await page.reload();
  await expect(tools).toHaveAccessibleName("Tools for this chat: 1 off");
  await tools.click();
  await menu.getByRole("switch", { name: "Skills" }).click();
  await menu.getByRole("switch", { name: "Memory" }).click();
  await page.keyboard.press("Escape");
  await expect(page.getByRole("img", { name: "Memory is paused in this chat" })).toBeVisible();
  const id = page.url().split("/").at(-1)!;
  const kept = async () =>
    ((await call(page, gateway.url, "get", `/api/threads/${id}`)) as { metadata: { switched_off: string[] } })
      .metadata.switched_off;
  await expect.poll(kept).toEqual(["web", "skills", "memory"]);
  await chat.field.fill("/");
  await expect(page.getByRole("option", { name: /^\/new/ })).toBeVisible();
  await expect(page.getByRole("option", { name: /data-analysis/ })).toHaveCount(0);
  await chat.field.fill("");
  await page.goto("/chats");
  await expect(tools).toHaveAccessibleName("Tools for this chat");
});

test("a temporary chat is marked, and in no list", async ({ page, chat }) => {
  const start = page.getByRole("button", { name: "Temporary chat" });
  await start.click();
  await expect(start).toHaveAttribute("aria-pressed", "true");
  await chat.ask("hello passing falcon");
  await expect(page.locator("header").getByText("Temporary chat")).toBeVisible();
  await expect(page.locator("[data-thread-row]").filter({ hasText: "falcon" })).toHaveCount(0);
  await page.reload();
  await expect(page.locator("header").getByText("Temporary chat")).toBeVisible();
  await page.getByRole("button", { name: /^Tools for this chat/ }).click();
  await expect(page.getByRole("switch", { name: "Memory" })).toBeDisabled();
  await page.keyboard.press("Escape");
  await chat.fresh();
  await expect(start).toHaveAttribute("aria-pressed", "false");
});

test("instructions, agents, skills, help and what is new are where people look @nightly", async ({
  page,
}) => {
  const sidebar = page.getByRole("navigation", { name: "Chats" });
  for (const name of ["Agents", "Skills"]) {
    await sidebar.getByRole("link", { name, exact: true }).click();
    await expect(page.getByRole("heading", { level: 1, name })).toBeVisible();
    await page.goto("/chats");
  }
  const choose = async (name: string) => {
    await page.getByRole("button", { name: "admin@example.com" }).click();
    await page.getByRole("menuitem", { name }).click();
  };
  await choose("What’s new");
  await expect(page.getByRole("heading", { name: "Changelog" })).toBeVisible();
  await page.goto("/chats");
  await choose("Help");
  await expect(page.getByRole("heading", { name: "The workspace" })).toBeVisible();
  await page.getByRole("article").getByRole("link", { name: "skills" }).first().click();
  await expect(page.getByRole("heading", { name: "Skills", exact: true }).last()).toBeVisible();
  await page.goto("/settings/instructions");
  await expect(page.getByLabel("USER.md", { exact: true })).toBeVisible();
});
