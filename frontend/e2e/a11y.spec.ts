import { violations } from "./axe";
import { call } from "./call";
import { Chat } from "./chat";
import { expect, signIn, test } from "./fixtures";
import { eachPlainPage } from "./pages";

for (const mobile of [false, true]) {
  const tag = mobile ? "@nightly" : [];
  test(
    `every page can be used by everybody, ${mobile ? "mobile" : "desktop"}`,
    { tag },
    async ({ browser, gateway }) => {
      test.setTimeout(400_000);
      const viewport = mobile ? { width: 375, height: 812 } : { width: 1360, height: 860 };
      const context = await browser.newContext({
        viewport,
        isMobile: mobile,
        hasTouch: mobile,
        bypassCSP: true,
      });
      const page = await context.newPage();
      const check = async (where: string) => {
        await page.waitForTimeout(600); // colours fade
        expect.soft(await violations(page), where).toEqual([]);
        await page.emulateMedia({ colorScheme: "dark" });
        await expect(page.locator("html")).toHaveClass(/\bdark\b/);
        await page.waitForTimeout(600);
        expect.soft(await violations(page, ["color-contrast"]), `${where}, dark`).toEqual([]);
        await page.emulateMedia({ colorScheme: "light" });
      };
      await page.goto(`${gateway.url}/login`);
      await page.getByLabel("Email").waitFor();
      await check("login");
      await signIn(context, gateway.url);
      await call(page, gateway.url, "post", "/api/agents", { name: "writer", soul: "You **write**." });
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
      await eachPlainPage(page, gateway.url, check);
      await call(page, gateway.url, "delete", "/api/agents/writer");
      await context.close();
    },
  );
}
