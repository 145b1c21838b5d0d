import type { Page } from "@playwright/test";

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
