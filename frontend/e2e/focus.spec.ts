import type { Locator, Page } from "@playwright/test";
import { Chat } from "./chat";
import { call } from "./call";
import { expect, test } from "./fixtures";

const button = (page: Page | Locator, name: string | RegExp) => page.getByRole("button", { name }).last();

/** Presses by keyboard, as those do who depend on where the focus is. */
async function press(control: Locator) {
  await expect(control).not.toHaveAttribute("aria-disabled", "true");
  await control.focus();
  await control.press("Enter");
}

/** The focus is on something, and stays there when all that follows has been drawn. */
async function isKept(page: Page, where: string) {
  await page.waitForTimeout(400);
  const at = await page.evaluate(() => document.activeElement?.tagName);
  expect.soft(at, where).not.toBe("BODY");
}

test("closing gives the focus back to what opened", async ({ page, chat }) => {
  await chat.ask("write");
  const edit = button(chat.log, "Edit message");
  await press(edit);
  await expect(page.getByRole("textbox", { name: "Your message" })).toBeFocused();
  await press(page.getByRole("button", { name: "Cancel" }));
  await expect(edit).toBeFocused();

  const card = chat.log.getByRole("button", { name: /^Open report\.md|report\.md/ }).last();
  const panel = page.getByRole("region", { name: "Files of this conversation" });
  if (await panel.isVisible()) await press(panel.getByRole("button", { name: "Close files" }));
  await press(card);
  await press(panel.getByRole("button", { name: "Edit", exact: true }));
  await expect(panel.locator(".cm-content")).toBeFocused(); // one writes at once
  await press(panel.getByRole("button", { name: "Cancel" }));
  await expect(panel.getByRole("button", { name: "Edit", exact: true })).toBeFocused();
  await press(panel.getByRole("button", { name: "Close files" }));
  await expect(card).toBeFocused();

  const timeline = button(chat.log, "Timeline");
  await press(timeline);
  await page.getByRole("tree").focus();
  await press(page.getByRole("region", { name: "Timeline" }).getByRole("button", { name: /^Close/ }));
  await expect(timeline).toBeFocused();
});

test("no control that goes away takes the focus with it @nightly", async ({ page, chat, gateway }) => {
  test.setTimeout(300_000);
  page.setDefaultTimeout(20_000);
  await chat.ask("hello");
  await press(button(page, "Hide suggestions"));
  await isKept(page, "suggestions hidden");

  await chat.say("slow 40");
  await chat.field.fill("later");
  await chat.field.press("Enter");
  await press(button(page, "Don’t send"));
  await isKept(page, "message not sent");
  await chat.field.fill("");
  await press(chat.stop);
  await chat.done();
  await isKept(page, "agent stopped");

  for (const [open, close] of [
    ["Don’t allow", "Cancel"],
    ["Change", "Cancel"],
    ["Reply for the tool", "Cancel"],
  ] as const) {
    if (open === "Don’t allow") await chat.ask("approve echo 1");
    const opener = chat.log.getByRole("button", { name: open, exact: true });
    await press(opener);
    await isKept(page, `${open}: opened`);
    await press(chat.log.getByRole("button", { name: close, exact: true }));
    await expect(opener, `${open}: cancelled`).toBeFocused();
  }
  await press(chat.log.getByRole("button", { name: "Allow", exact: true }));
  await chat.done();
  await isKept(page, "allowed");
  await chat.ask("approve echo 1 // echo 2");
  await press(chat.log.getByRole("button", { name: "Allow", exact: true }).first());
  await isKept(page, "one of two allowed");
  await press(chat.log.getByRole("button", { name: "Change decision" }));
  await isKept(page, "decision taken back");
  await press(chat.log.getByRole("button", { name: "Allow all" }));
  await chat.done();
  await isKept(page, "all allowed");

  await chat.ask("ask");
  await press(chat.log.getByRole("button", { name: "PDF", exact: true }));
  await chat.done();
  await isKept(page, "option chosen");

  await page
    .locator("input[type=file]")
    .first()
    .setInputFiles({ name: "a.txt", mimeType: "text/plain", buffer: Buffer.from("a") });
  await press(page.getByRole("button", { name: "Remove a.txt" }));
  await isKept(page, "attachment removed");
  await chat.field.fill("/data-analysis ");
  await press(page.getByRole("group", { name: "Skills: data-analysis" }).getByRole("button"));
  await isKept(page, "skill removed");

  await lists(page, chat);
  await settings(page, gateway.url);
});

async function lists(page: Page, chat: Chat) {
  const list = page.getByRole("navigation", { name: "Chats" });
  const row = list.locator("[data-thread-row]").first();
  await row.focus();
  await page.keyboard.press("F2");
  await list.getByRole("textbox", { name: "Chat title" }).fill("Renamed");
  await page.keyboard.press("Enter");
  await isKept(page, "chat renamed");
  await expect(row).toBeFocused();
  await page.keyboard.press("Space");
  await press(list.getByRole("button", { name: "Cancel" }));
  await isKept(page, "selection ended");
  await chat.fresh();
  await chat.ask("hello again");
  await row.focus();
  await page.keyboard.press("Delete");
  await isKept(page, "chat deleted");
  await press(page.getByRole("button", { name: "Close" }).last());
  await isKept(page, "notice closed");
  await press(list.getByRole("button", { name: "Hide sidebar" }));
  await isKept(page, "sidebar hidden");
  await press(list.getByRole("button", { name: "Show sidebar" }));
  await isKept(page, "sidebar shown");
}

async function settings(page: Page, url: string) {
  for (const name of ["one", "two"])
    await call(page, url, "post", "/api/agents", { name, soul: "You write." });
  await page.goto(`${url}/settings/agents`);
  await press(page.getByRole("link", { name: "one", exact: true }));
  await press(page.getByRole("button", { name: "Delete one" }));
  await page.getByRole("alertdialog").getByRole("button", { name: "Delete" }).press("Enter");
  await expect(page.getByRole("alertdialog")).toBeHidden();
  await isKept(page, "agent deleted");
  await call(page, url, "delete", "/api/agents/two");
}

test("the focus stays with what one does: versions, pins, documents, tokens, settings @nightly", async ({
  page,
  chat,
  gateway,
}) => {
  test.setTimeout(300_000);
  await chat.ask("write");
  await press(button(chat.log, "Regenerate"));
  await chat.done();
  for (const name of ["Earlier version", "Later version"]) {
    await press(button(chat.log, name));
    await expect(chat.log.getByText(name === "Earlier version" ? "1 / 2" : "2 / 2")).toBeVisible();
    await isKept(page, name);
    await expect(button(chat.log, name)).toBeFocused();
  }
  const panel = page.getByRole("region", { name: "Files of this conversation" });
  if (!(await panel.isVisible())) await press(chat.log.getByRole("button", { name: /report\.md/ }).last());
  const more = panel.getByRole("button", { name: "More", exact: true });
  let made = () => {};
  const document = new Promise<void>((done) => (made = done));
  await page.route("**/reports", async (route) => {
    await document;
    await route.fulfill({ body: "%PDF" });
  });
  await press(more);
  await page.getByRole("menuitem", { name: "Save as PDF" }).press("Enter");
  await isKept(page, "document on its way");
  await expect(more).toBeFocused();
  made();
  await expect(page.getByText("report.pdf is downloading")).toBeVisible();
  await expect(more).toBeFocused();

  const list = page.getByRole("navigation", { name: "Chats" });
  const actions = list.getByRole("button", { name: /^Actions for/ }).first();
  for (const how of ["keyboard", "mouse"])
    for (const [what, undo] of [
      ["Pin", "Unpin"],
      ["Unpin", "Pin"],
    ] as const) {
      const item = page.getByRole("menuitem", { name: what, exact: true });
      if (how === "keyboard") {
        await press(actions);
        await item.press("Enter");
      } else {
        await list.locator("[data-thread-row]").first().hover();
        await actions.click();
        await item.click();
      }
      await expect(item).toBeHidden();
      await isKept(page, `${what} by ${how}`);
      await expect(actions, `${what} by ${how}`).toBeFocused();
      await actions.press("Enter");
      await expect(page.getByRole("menuitem", { name: undo, exact: true })).toBeVisible();
      await page.keyboard.press("Escape");
    }

  const main = page.getByRole("main");
  await chat.field.focus();
  await page.keyboard.press("ControlOrMeta+,");
  await expect(page.getByRole("heading", { name: "Account" })).toBeVisible();
  await expect(main).toBeFocused();
  await press(page.getByRole("link", { name: "Back to chat" }));
  await expect(chat.field).toBeFocused();
  await press(list.getByRole("button", { name: /@/ }));
  await page.getByRole("menuitem", { name: "Help" }).press("Enter");
  await expect(page).toHaveURL(/about\?name=workspace/);
  await expect(main).toBeFocused();

  await page.goto(`${gateway.url}/settings/tokens`);
  const create = main.getByRole("button", { name: "New token" });
  await press(create);
  await page.getByRole("textbox", { name: "Name" }).fill("one");
  await page.keyboard.press("Enter");
  await page.getByRole("dialog").getByRole("button", { name: "Done" }).press("Enter");
  await isKept(page, "token made");
  await expect(create).toBeFocused();
  await press(page.getByRole("button", { name: "Revoke: one" }));
  await page.getByRole("alertdialog").getByRole("button", { name: "Revoke" }).press("Enter");
  await isKept(page, "token revoked");
  await expect(create).toBeFocused();
});
