import type { Page } from "@playwright/test";
import { expect, test } from "./fixtures";
import { eachChinesePage } from "./pages";

/** What stands out of the window, and texts that are cut without a sign of it. */
const faults = (page: Page) =>
  page.evaluate(() => {
    const found: string[] = [];
    const name = (one: Element) => `${one.tagName} “${one.textContent?.trim().slice(0, 30)}”`;
    const scrolls = (one: Element | null): boolean =>
      !!one && (/auto|scroll/.test(getComputedStyle(one).overflowX) || scrolls(one.parentElement));
    if (document.documentElement.scrollWidth > innerWidth) found.push("the page is wider than the window");
    for (const one of document.querySelectorAll("body *")) {
      const style = getComputedStyle(one);
      const box = one.getBoundingClientRect();
      const words = [...one.childNodes].some((node) => node.nodeType === 3 && node.textContent?.trim());
      if (
        !words ||
        box.width <= 1 ||
        box.height <= 1 ||
        style.visibility === "hidden" ||
        one.closest(".sr-only, svg, [inert]")
      )
        continue;
      if ((box.right > innerWidth + 1 || box.left < -1) && !scrolls(one))
        found.push(`out of the window: ${name(one)}`);
      const cut = style.overflowX === "hidden" || style.overflowX === "clip";
      if (cut && style.textOverflow !== "ellipsis" && one.scrollWidth > one.clientWidth + 1)
        found.push(`cut: ${name(one)}`);
      if (
        one.matches("button *, button") &&
        style.whiteSpace !== "nowrap" &&
        one.scrollHeight > one.clientHeight + 4 &&
        cut
      )
        found.push(`cut below: ${name(one)}`);
    }
    return found;
  });

for (const width of [390, 768, 1024, 1440]) {
  test(`Chinese fits everywhere, ${width} wide`, { tag: "@nightly" }, async ({ browser, session }) => {
    const context = await browser.newContext({ viewport: { width, height: 844 }, locale: "zh-CN" });
    const page = await context.newPage();
    const check = async (where: string) => {
      expect.soft(await faults(page), where).toEqual([]);
    };
    await eachChinesePage(page, session, check);
    await context.close();
  });
}
