import { expect, type Page } from "@playwright/test";
import type { Session } from "./session";

const SECTIONS = [
  "account",
  "tokens",
  "approvals",
  "appearance",
  "notifications",
  "memory",
  "skills",
  "skills?name=pdf",
  "agents",
  "agents?name=writer",
  "mcp",
  "channels",
  "usage",
  "models",
  "sandbox",
  "users",
  "about",
] as const;

/** Looks at each section of the settings, and at a page that does not exist. */
export async function eachPlainPage(page: Page, url: string, check: (where: string) => Promise<void>) {
  for (const place of [...SECTIONS.map((section) => `settings/${section}`), "nowhere"]) {
    await page.goto(`${url}/${place}`);
    await page.getByRole("heading").first().waitFor();
    await check(place);
  }
}

/** Looks at sign-in, a chat with a file and each plain page, in a browser whose language is Chinese. */
export async function eachChinesePage(page: Page, session: Session, check: (where: string) => Promise<void>) {
  await page.goto(`${session.url}/login`);
  await page.getByLabel("邮箱").waitFor();
  await check("login");
  await session.enter(page.context());
  await page.goto(`${session.url}/chats`);
  await page.getByRole("textbox", { name: "消息", exact: true }).fill("write");
  await check("welcome");
  await page.getByRole("button", { name: "发送", exact: true }).click();
  await expect(page.getByText("The report is ready").last()).toBeVisible();
  await expect(page.getByRole("button", { name: "停止智能体" })).toBeHidden();
  await check("answer and file");
  await page.goto(`${page.url().split("?")[0]}?panel=`);
  await expect(page.getByText("report.md").last()).toBeVisible();
  await check("files");
  await eachPlainPage(page, session.url, check);
}
