import { join, resolve } from "node:path";
import type { Page } from "@playwright/test";
import { expect, signIn, test } from "./fixtures";
import { call } from "./call";
import { askWithSubagents, Chat } from "./chat";
import { Gateway } from "./server";

const TARGET = resolve(import.meta.dirname, "../screenshots");
const LOOKS = [
  { name: "light", colorScheme: "light", mobile: false },
  { name: "dark", colorScheme: "dark", mobile: false },
  { name: "mobile", colorScheme: "light", mobile: true },
  { name: "mobile-dark", colorScheme: "dark", mobile: true },
] as const;
const SECTIONS = [
  "account",
  "tokens",
  "appearance",
  "notifications",
  "approvals",
  "memory",
  "skills",
  "skills?name=pdf",
  "agents",
  "agents?name=writer",
  "mcp",
  "usage",
  "models",
  "sandbox",
  "users",
  "about",
];

for (const { name, colorScheme, mobile } of LOOKS) {
  test(`pictures: ${name}`, async ({ browser, gateway, model }) => {
    test.setTimeout(600_000);
    const viewport = mobile ? { width: 390, height: 844 } : { width: 1360, height: 860 };
    const context = await browser.newContext({ viewport, isMobile: mobile, hasTouch: mobile, colorScheme });
    const page = await context.newPage();
    const chat = new Chat(page);
    const shot = async (what: string, of: Page = page) => {
      await of.waitForTimeout(500);
      await of.screenshot({ path: join(TARGET, `${name}-${what}.png`) });
    };
    const fresh = async (path = "/chats") => {
      await page.goto(`${gateway.url}${path}`);
      await chat.field.waitFor();
    };

    const unset = await new Gateway(model.url, ["--no-account"]).start();
    await page.goto(unset.url);
    await page.getByLabel("Email").waitFor();
    await shot("setup");
    await unset.stop();
    await page.goto(`${gateway.url}/login`);
    await page.getByLabel("Email").waitFor();
    await shot("login");
    await page.getByLabel("Email").fill("admin@example.com");
    await page.getByLabel("Password", { exact: true }).fill("not this one");
    await page.keyboard.press("Enter");
    await expect(page.getByText("Wrong email or password.")).toBeVisible();
    await shot("login-wrong");

    await signIn(context, gateway.url);
    await fresh();
    await shot("welcome");
    await chat.field.fill("/");
    await shot("slash");
    await chat.field.fill("/data-analysis ");
    await page.getByRole("group", { name: "Skills: data-analysis" }).waitFor();
    await shot("skill-chip");
    await chat.field.press("Backspace");
    await page.getByRole("button", { name: /^Model/ }).click();
    await shot("models-menu");
    await page.keyboard.press("Escape");
    await page.waitForTimeout(500);
    await page.getByRole("button", { name: /^Mode:/ }).click();
    await shot("modes-menu");
    await page.keyboard.press("Escape");

    await chat.ask("markdown");
    await page.waitForTimeout(2500);
    await shot("markdown-end");
    await chat.log.evaluate((log) => log.scrollTo(0, 0));
    await shot("markdown-top");
    await chat.ask("cjk");
    await shot("cjk");

    await fresh();
    await chat.say("slow 60");
    await chat.sees(/step 4 of 60/);
    await shot("live-command");
    await chat.field.fill("and then make a chart");
    if (mobile) await page.getByRole("button", { name: "Queue" }).click();
    else await chat.field.press("Enter");
    await page.getByRole("button", { name: "Don’t send" }).waitFor();
    await shot("queued");
    await page.getByRole("button", { name: "Don’t send" }).click();
    await chat.stop.click();
    await chat.done();
    await shot("stopped");

    await fresh();
    await chat.say("plan");
    await expect(page.getByText("Compute the totals").last()).toBeVisible();
    await shot("plan");
    await chat.done();
    await chat.ask("ask");
    await shot("clarification");
    await chat.ask("approve rm -rf old && echo removed");
    await shot("decision");
    await page.getByRole("button", { name: "Change", exact: true }).click();
    await shot("decision-edit");
    await page.getByRole("button", { name: /^Waiting for you: / }).click();
    await page.getByRole("dialog", { name: "Waiting for you" }).getByRole("article").first().waitFor();
    await shot("inbox");
    await page.keyboard.press("Escape");

    await fresh();
    await chat.ultra();
    await chat.say(
      "delegate Count the rows: slow 40 // Read the notes: error 400 // Write the report: write",
    );
    await chat.sees(/The report is ready/);
    await shot("sub-agents");
    await chat.log
      .getByRole("button", { name: /^(?!Stop C).*Count the rows/ })
      .last()
      .click();
    await expect(page.getByText(/step 9 of 40/).last()).toBeVisible();
    await shot("sub-agent-transcript");
    await fresh();
    await chat.ultra();
    await chat.say("aside Count the rows: slow 40 // Read the notes: slow 60");
    await chat.sees("All 2 have reported.");
    await shot("sub-agents-background");
    await chat.done();
    await fresh();
    await chat.ultra();
    await chat.say(`delegate ${[1, 2, 3, 4, 5, 6, 7, 8].map((n) => `Part ${n}: slow 6`).join(" // ")}`);
    await chat.sees("Part 7");
    await shot("sub-agents-many");
    await chat.done();

    await fresh();
    await chat.ask("fail");
    await shot("tool-errors");
    await chat.ask("error 401");
    await shot("run-error");
    await chat.ask("think");
    await page
      .getByRole("button", { name: /Thought/ })
      .last()
      .click();
    await shot("thinking");

    await fresh();
    await chat.ask("write");
    await page.getByRole("button", { name: /Wrote a file/ }).click();
    await shot("steps-open");
    await page
      .getByRole("button", { name: /Make it precise/ })
      .first()
      .click();
    await shot("diff");
    await chat.log
      .getByRole("button", { name: /report\.md/ })
      .last()
      .click();
    await page.getByRole("heading", { name: "Sales in spring" }).waitFor();
    await shot("file-markdown");

    await page.goto(`${gateway.url}/chats/${await askWithSubagents(page, gateway.url, "fleet 4 6")}`);
    await page.getByRole("button", { name: "Timeline", exact: true }).click();
    const lane = page.getByRole("treeitem", { name: /Look at part 2/ });
    await lane.locator("svg").first().click();
    await shot("timeline");
    await lane.click();
    await shot("timeline-step");

    await fresh();
    await chat.ask("files");
    await shot("file-cards");
    const thread = page.url().split("?")[0]!;
    for (const file of [
      "",
      "data.csv",
      "notebook.ipynb",
      "script.py",
      "chart.svg",
      "picture.png",
      "paper.pdf",
      "facts.json",
    ]) {
      const path = file && `/mnt/user-data/outputs/${file}`;
      await page.goto(`${thread}?panel=${encodeURIComponent(path)}`);
      await page.getByRole("region", { name: "Files of this conversation" }).waitFor();
      await page.waitForTimeout(1500);
      await shot(`panel-${file.split(".")[1] ?? "list"}`);
    }
    await fresh();
    await chat.ask("site");
    await chat.log
      .getByRole("button", { name: /index\.html/ })
      .last()
      .click();
    await page.frameLocator("iframe").getByText("The script ran.").waitFor();
    await shot("panel-site");

    await fresh();
    if (mobile) {
      await page.getByRole("button", { name: "Menu" }).click();
      await shot("drawer");
      await page.keyboard.press("Escape");
    }
    await page.keyboard.press("ControlOrMeta+k");
    await shot("palette");
    await page.keyboard.press("Escape");
    await page.keyboard.press("ControlOrMeta+/");
    await shot("shortcuts");
    await page.keyboard.press("Escape");
    if (name === "light")
      await call(page, gateway.url, "post", "/api/agents", { name: "writer", soul: "You **write**." });
    for (const section of SECTIONS) {
      await page.goto(`${gateway.url}/settings/${section}`);
      await page.getByRole("heading").first().waitFor();
      await shot(`settings-${section.replace("?name=", "-")}`);
    }
    await page.goto(`${gateway.url}/chats/00000000-0000-4000-8000-000000000000`);
    await page.getByText("This chat doesn’t exist").waitFor();
    await shot("missing");
    await page.goto(`${gateway.url}/nowhere`);
    await shot("404");
    await context.close();
  });
}
