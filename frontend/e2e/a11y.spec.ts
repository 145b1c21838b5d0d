import type { Page } from "@playwright/test";
import { looker } from "./axe";
import { call } from "./call";
import { Chat, threadOf } from "./chat";
import { expect, test } from "./fixtures";
import { eachChinesePage, eachPlainPage } from "./pages";

test.use({ actionTimeout: 30_000 }); // a click that finds nothing must not take the whole test's time

const HEBREW = "## סיכום\n\n- **אחת** `code`\n\n| שם | סכום |\n|---|---|\n| דנה | 12 |\n";

for (const mobile of [false, true]) {
  const tag = mobile ? "@nightly" : [];
  test(
    `the page of chats can be used by everybody, ${mobile ? "mobile" : "desktop"}`,
    { tag },
    async ({ browser, gateway, session }) => {
      test.setTimeout(400_000);
      const { context, page, check } = await looker(browser, mobile);
      await page.goto(`${gateway.url}/login`);
      await page.getByLabel("Email").waitFor();
      await check("login");
      await session.enter(context);
      await page.goto(`${gateway.url}/chats`);
      const chat = new Chat(page);
      await chat.field.waitFor();
      await check("welcome");
      for (const [word, seen] of [
        ["markdown", "The end."],
        ["write", "The report is ready"],
        ["approve echo 1", "Allow"],
      ] as const) {
        await chat.say(word);
        await expect(page.getByText(seen).last()).toBeVisible();
      }
      await check("conversation");
      await page.getByRole("button", { name: /^Waiting for you: / }).click();
      const inbox = page.getByRole("dialog", { name: "Waiting for you" });
      await inbox.getByRole("button", { name: "Allow", exact: true }).first().waitFor();
      await check("inbox");
      await page.keyboard.press("Escape");
      await page.getByRole("button", { name: "Timeline", exact: true }).first().click();
      await page.getByRole("tree").focus();
      await page.keyboard.press("ArrowDown");
      await check("timeline");
      await page.goto(`${page.url().split("?")[0]}?panel=`);
      await expect(page.getByText("report.md").last()).toBeVisible();
      await check("files");
      await page.goto(page.url().split("?")[0]!);
      await expect(page.getByText("report.md").last()).toBeVisible();
      await chat.ultra();
      await chat.ask("delegate Count the rows: slow 2 // Read the notes: error 400");
      await check("sub-agents");
      await chat.log
        .getByRole("button", { name: /Count the rows/ })
        .last()
        .click();
      await expect(page.getByText("The command has ended.").last()).toBeVisible();
      await check("transcript of a sub-agent");
      await page.goto(`${gateway.url}/chats`);
      await chat.field.fill("/data-analysis ");
      await page.getByRole("group", { name: "Skills: data-analysis" }).waitFor();
      await check("chip of a skill");
      await chat.field.press("Backspace");
      await chat.field.fill("/");
      await page.getByRole("option", { name: /^\/pdf / }).waitFor();
      await check("menu of commands and skills");
      await context.close();
    },
  );

  test(
    `settings can be used by everybody, ${mobile ? "mobile" : "desktop"}`,
    { tag: "@nightly" },
    async ({ browser, gateway, session }) => {
      test.setTimeout(400_000);
      const { context, page, check } = await looker(browser, mobile);
      await session.enter(context);
      await call(page, gateway.url, "post", "/api/agents", { name: "writer", soul: "You **write**." });
      await eachPlainPage(page, gateway.url, check);
      await call(page, gateway.url, "delete", "/api/agents/writer");
      await context.close();
    },
  );
}

for (const mobile of [false, true]) {
  const size = mobile ? "mobile" : "desktop";
  const menu = mobile ? ["Menu"] : [];

  test(
    `menus and dialogs can be used by everybody, ${size}`,
    { tag: "@nightly" },
    async ({ browser, gateway, session }) => {
      test.setTimeout(600_000);
      const { context, page, check } = await looker(browser, mobile);
      await session.enter(context);
      await page.goto(`${gateway.url}/chats`);
      await threadOf(page, gateway.url, "A question", "An answer.");
      const opened = async (path: string, ...names: (string | RegExp)[]) => {
        await page.goto(`${gateway.url}/${path}`);
        for (const name of names) await pressed(page, name);
        await check(`${path}: ${names.join(", ")}`);
      };
      await opened("chats", /^Model/);
      await opened("chats", /^Mode:/);
      await opened("chats", /^Tools for this chat/);
      await opened("chats", "Temporary chat");
      if (mobile) await opened("chats", ...menu);
      await opened("chats", ...menu, "admin@example.com");
      await page.getByRole("menuitem", { name: "Archived chats" }).click();
      await page.getByText("No archived chats").waitFor();
      await check("archived chats");
      await opened("chats", ...menu, /^Actions for/);
      await page.getByRole("menuitem", { name: "Select" }).click();
      await page.getByRole("toolbar").waitFor();
      await check("chosen chats");
      for (const [what, keys] of [
        ["palette", "ControlOrMeta+k"],
        ["shortcuts", "ControlOrMeta+/"],
      ] as const) {
        await page.goto(`${gateway.url}/chats`);
        await new Chat(page).field.waitFor();
        await page.keyboard.press(keys);
        await page.getByRole("dialog").waitFor();
        await check(what);
      }
      await opened("settings/account", "Change password");
      await opened("settings/account", "Delete account");
      await opened("settings/tokens", "New token");
      await opened("settings/memory", "Add");
      await opened("settings/skills", "Add");
      await opened("settings/agents", "New agent");
      await page.getByRole("menuitem", { name: "Fill in a form…" }).click();
      await check("new agent");
      await opened("settings/mcp", "Add server");
      await page.getByRole("combobox", { name: "Type" }).click();
      await check("kinds of servers");
      await opened("settings/channels", "Add channel");
      await opened("settings/users", "Add a person");
      await opened("settings/usage");
      await page.getByRole("combobox").click();
      await page.getByRole("option").first().waitFor();
      await check("whose usage");
      await opened("settings/about?name=workspace");
      await context.close();
    },
  );

  test(
    `what a chat may hold can be used by everybody, ${size}`,
    { tag: "@nightly" },
    async ({ browser, gateway, session }) => {
      test.setTimeout(600_000);
      const { context, page, check } = await looker(browser, mobile);
      await session.enter(context);
      await page.goto(`${gateway.url}/chats`);
      const chat = new Chat(page);
      const said = async (message: string, answer: string | RegExp) => {
        await page.goto(`${gateway.url}/chats`);
        await chat.say(message);
        await expect(page.getByText(answer).last()).toBeVisible();
      };
      await page.goto(`${gateway.url}/chats/${await threadOf(page, gateway.url, "טבלה", HEBREW)}`);
      await page.getByRole("cell", { name: "דנה" }).waitFor();
      await check("an answer from right to left");
      await chat.log.getByRole("article").first().hover();
      await pressed(page, "Edit message");
      await page.getByRole("textbox", { name: "Your message" }).waitFor();
      await check("a message being edited");
      await said("think", "The answer is");
      await pressed(page, /Thought/);
      await check("thoughts");
      await said("ask", "Which format");
      await check("a question");
      await said("approve echo 1", "Allow");
      await check("an approval");
      await pressed(page, "Change");
      await check("an approval being changed");
      await said("error 401", "The provider rejected the API key");
      await check("an error");
      await said("cut", "The answer broke off");
      await check("an answer that broke off");
      await said("fail", "Reading failed");
      await pressed(page, /failed/);
      await check("steps that failed");
      await said("slow 400", /step 2 of 400/);
      await chat.field.fill("later");
      await pressed(page, "Queue");
      await expect(page.getByText("1 message queued")).toBeVisible();
      await check("at work, with a message that waits");
      await chat.stop.click();
      await chat.done();
      await check("stopped");
      await said("files", "Seven files are ready.");
      const thread = page.url().split("?")[0]!;
      for (const name of [
        "data.csv",
        "chart.svg",
        "paper.pdf",
        "notebook.ipynb",
        "script.py",
        "facts.json",
      ]) {
        await page.goto(`${thread}?panel=${encodeURIComponent(`/mnt/user-data/outputs/${name}`)}`);
        await page.locator("[data-file]").getByText(name).first().waitFor();
        await check(name);
      }
      await page.goto(thread);
      await pressed(page, /^Context:/);
      await check("context");
      await context.close();
    },
  );

  test(`Chinese can be used by everybody, ${size}`, { tag: "@nightly" }, async ({ browser, session }) => {
    test.setTimeout(600_000);
    const { context, page, check } = await looker(browser, mobile, "zh-CN");
    await eachChinesePage(page, session, check);
    await context.close();
  });
}

/** Presses the first button of this name as soon as the page answers to it. */
async function pressed(page: Page, name: string | RegExp) {
  await page.getByRole("button", { name, exact: true }).first().click();
}
