import type { Page } from "@playwright/test";
import { askWithSubagents, longThread } from "./chat";
import { expect, test } from "./fixtures";

/** Counts must be within their budgets; times, of which the median of three counts, within half as much again. */
const TRIES = 3;
const SLACK = { ms: 1.5 } as Record<string, number>;

const median = (values: number[]) =>
  values.toSorted((one, other) => one - other)[Math.floor(values.length / 2)]!;

function within(name: string, value: number, budget: number, unit: string) {
  console.log(
    `${name.padEnd(44)} ${value.toFixed(unit === "ms" ? 0 : 1).padStart(8)} ${unit.padEnd(6)} budget ${budget}`,
  );
  expect.soft(value, name).toBeLessThanOrEqual(budget * (SLACK[unit] ?? 1));
}

test("the page is there soon", async ({ page, gateway }) => {
  const times: number[] = [];
  for (let i = 0; i <= TRIES; i += 1) {
    await page.goto(`${gateway.url}/chats`);
    await page.getByRole("textbox", { name: "Message", exact: true }).waitFor();
    const time = await page.evaluate(
      () =>
        new Promise<number>((done) => {
          new PerformanceObserver((list) => done(list.getEntries().at(-1)!.startTime)).observe({
            type: "largest-contentful-paint",
            buffered: true,
          });
        }),
    );
    if (i > 0) times.push(time); // the first visit fills the cache
  }
  within("largest contentful paint, warm", median(times), 1500, "ms");
});

test("a slow network does not keep anybody from writing", async ({ page, gateway }) => {
  const network = await page.context().newCDPSession(page);
  const bytes = (400 * 1000) / 8;
  await network.send("Network.enable");
  await network.send("Network.setCacheDisabled", { cacheDisabled: true });
  await network.send("Network.emulateNetworkConditions", {
    offline: false,
    latency: 400,
    downloadThroughput: bytes,
    uploadThroughput: bytes,
  });
  const before = Date.now();
  await page.goto(`${gateway.url}/chats`, { waitUntil: "commit" });
  await page.getByRole("textbox").fill("hello from a train");
  within("400 kbit/s: the first letter", Date.now() - before, 5000, "ms");
  const field = page.getByRole("textbox", { name: "Message", exact: true });
  await expect(field).toHaveValue("hello from a train", { timeout: 30_000 });
  within("400 kbit/s: ready to send", Date.now() - before, 9000, "ms");
});

/** Frame times in ms and long tasks while something happens. */
async function watchFrames(page: Page) {
  await page.evaluate(() => {
    const seen = { frames: [] as number[], long: [] as number[], on: true };
    (window as unknown as { seen: typeof seen }).seen = seen;
    new PerformanceObserver((list) =>
      seen.long.push(...list.getEntries().map((entry) => entry.duration)),
    ).observe({ type: "longtask" });
    let last = performance.now();
    const tick = (now: number) => {
      seen.frames.push(now - last);
      last = now;
      if (seen.on) requestAnimationFrame(tick);
    };
    requestAnimationFrame(tick);
  });
  return () =>
    page.evaluate(() => {
      const { seen } = window as unknown as { seen: { frames: number[]; long: number[]; on: boolean } };
      seen.on = false;
      const frames = seen.frames.toSorted((one, other) => one - other);
      return { p95: frames[Math.floor(frames.length * 0.95)]!, longest: Math.max(0, ...seen.long) };
    });
}

test("streaming does not make the page stutter", async ({ page }) => {
  await say(page, "markdown"); // loads what draws Markdown
  await expect(page.getByText("The end.")).toBeVisible({ timeout: 60_000 });
  await page.waitForTimeout(2000);
  const results: { p95: number; longest: number }[] = [];
  for (let i = 0; i < TRIES; i += 1) {
    await say(page, `prose ${i === 0 ? 5000 : 2000}`);
    await expect(page.getByRole("button", { name: "Stop" })).toBeVisible();
    const stop = await watchFrames(page);
    await expect(page.getByRole("button", { name: "Stop" })).toBeHidden({ timeout: 120_000 });
    results.push(await stop());
  }
  within("prose stream: frame p95", median(results.map(({ p95 }) => p95)), 50, "ms");
  within("prose stream: longest task", median(results.map(({ longest }) => longest)), 200, "ms");
});

test("a long answer neither jumps nor keeps the browser busy", async ({ page }) => {
  await say(page, "markdown"); // loads what draws Markdown
  await expect(page.getByRole("button", { name: "Stop" })).toBeHidden({ timeout: 60_000 });
  await page.evaluate(() => {
    const seen = { long: 0, shift: 0 };
    (window as unknown as { seen: typeof seen }).seen = seen;
    const watch = (type: string, add: (entry: PerformanceEntry) => void) =>
      new PerformanceObserver((list) => list.getEntries().forEach(add)).observe({ type });
    watch("longtask", (entry) => (seen.long += entry.duration));
    watch("layout-shift", (entry) => (seen.shift += (entry as unknown as { value: number }).value));
  });
  await say(page, "prose 7000");
  await expect(page.getByRole("button", { name: "Stop" })).toBeVisible();
  await expect(page.getByRole("button", { name: "Stop" })).toBeHidden({ timeout: 120_000 });
  const seen = await page.evaluate(
    () => (window as unknown as { seen: { long: number; shift: number } }).seen,
  );
  within("long answer: layout shift", seen.shift, 0.05, "");
  within("long answer: long tasks in all", seen.long, 1000, "ms");
});

test("a thread of 500 messages opens and scrolls", async ({ page, gateway }) => {
  const id = await longThread(page, gateway.url, 500);
  const opened: number[] = [];
  const scrolled: number[] = [];
  for (let i = 0; i < TRIES; i += 1) {
    await page.goto(`${gateway.url}/chats`);
    const before = Date.now();
    await page.goto(`${gateway.url}/chats/${id}`);
    await expect(page.getByText("answer 249", { exact: false }).last()).toBeVisible();
    opened.push(Date.now() - before);
    const stop = await watchFrames(page);
    for (let step = 0; step < 20; step += 1) {
      await page.getByRole("log").evaluate((log) => log.scrollBy(0, -2400));
      await page.waitForTimeout(50);
    }
    scrolled.push((await stop()).p95);
  }
  within("500 messages: last one visible", median(opened), 1500, "ms");
  within("500 messages: scroll, frame p95", median(scrolled), 150, "ms");
  within(
    "500 messages: DOM nodes",
    await page.evaluate(() => document.querySelectorAll("*").length),
    2000,
    "nodes",
  );
});

test("the timeline of a long run opens at once", async ({ page, gateway }) => {
  test.setTimeout(180_000);
  const id = await askWithSubagents(page, gateway.url, "fleet 8 24");
  const times: number[] = [];
  for (let i = 0; i <= TRIES; i += 1) {
    await page.goto(`${gateway.url}/chats/${id}`);
    await expect(page.getByText("All 8 parts were looked at.")).toBeVisible();
    await page.waitForTimeout(1000);
    const opened = await page.evaluate(async () => {
      const before = performance.now();
      document.querySelector<HTMLElement>('button[aria-label="Timeline"]')!.click();
      while (document.querySelectorAll('[role="treeitem"]').length < 8)
        await new Promise((next) => requestAnimationFrame(next));
      await new Promise((next) => requestAnimationFrame(() => setTimeout(next)));
      return performance.now() - before;
    });
    if (i > 0) times.push(opened); // the first visit fills the cache
  }
  await expect(page.getByRole("treeitem", { name: /49 steps inside/ })).toHaveCount(8);
  within("timeline of 8 subagents, 400 steps: opened", median(times), 500, "ms");
  for (let i = 0; i < 8; i += 1)
    await page
      .getByRole("treeitem", { expanded: false, name: /general-purpose/ })
      .last()
      .locator("svg")
      .first()
      .click();
  const nodes = await page.evaluate(
    () => document.querySelector('[role="tree"]')!.querySelectorAll("*").length,
  );
  within("timeline of 8 subagents, all open: DOM nodes", nodes, 2000, "nodes");
});

async function say(page: Page, text: string) {
  await page.getByRole("textbox", { name: "Message", exact: true }).fill(text);
  await page.keyboard.press("Enter");
}
