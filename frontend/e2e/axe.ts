import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { expect, type Browser, type Page } from "@playwright/test";

const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

interface Axe {
  run(context: object, options: object): Promise<{ violations: { id: string; nodes: { html: string }[] }[] }>;
}

/** Ids of broken rules (of all, or of `only` some) with the first place of each. The handle between two panels belongs to no
 * landmark, rightly. */
export async function violations(page: Page, only?: string[]): Promise<string[]> {
  await settled(page);
  await page.evaluate(AXE);
  return page.evaluate(async (runOnly) => {
    const { axe } = window as unknown as { axe: Axe };
    const found = await axe.run({ exclude: [["[data-separator]"]] }, runOnly ? { runOnly } : {});
    return found.violations.map(({ id, nodes }) => `${id}: ${nodes[0]?.html.slice(0, 200)}`);
  }, only);
}

/** Nothing fades or moves any more: what does has less contrast. What spins for ever is not waited for. */
const settled = (page: Page) =>
  page.evaluate(async () => {
    const ends = (one: Animation) =>
      one.playState === "running" && Number.isFinite(one.effect?.getComputedTiming().endTime);
    await Promise.allSettled(
      document
        .getAnimations()
        .filter(ends)
        .map((one) => one.finished),
    );
  });

/** A page of this size and language; `check` looks at its state in light and dark. */
export async function looker(browser: Browser, mobile: boolean, locale = "en-US") {
  const viewport = mobile ? { width: 375, height: 812 } : { width: 1360, height: 860 };
  const context = await browser.newContext({
    viewport,
    isMobile: mobile,
    hasTouch: mobile,
    bypassCSP: true,
    locale,
  });
  const page = await context.newPage();
  const check = async (where: string) => {
    await page.waitForTimeout(600); // what comes late
    expect.soft(await violations(page), where).toEqual([]);
    await page.emulateMedia({ colorScheme: "dark" });
    await expect(page.locator("html")).toHaveClass(/\bdark\b/);
    expect.soft(await violations(page, ["color-contrast"]), `${where}, dark`).toEqual([]);
    await page.emulateMedia({ colorScheme: "light" });
  };
  return { context, page, check };
}
