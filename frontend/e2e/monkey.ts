import type { Page } from "@playwright/test";
import { expect, test } from "./fixtures";

const ACTIONS = Number(process.env.MONKEY_ACTIONS ?? 300);
const SEED = Number(process.env.MONKEY_SEED ?? 1);
const WORDS = [
  "hello",
  "slow 6",
  "file",
  "plan",
  "ask",
  "fail",
  "**bold** `code`",
  "名前 🦌 \u202eabc",
  "x".repeat(3000),
];
const KEYS = [
  "Escape",
  "Tab",
  "Shift+Tab",
  "Enter",
  "ArrowDown",
  "ArrowUp",
  "Control+k",
  "Control+b",
  "/",
  "?",
  "Home",
];
/** They end the session or leave the page. */
const FORBIDDEN = /sign out|log out|delete account|password|choose files|attach|download|print|export/i;
const CONTROLS =
  "button, a[href^='/'], [role=menuitem], [role=menuitemradio], [role=option], [role=tab], [role=switch], summary, select";

/** Random numbers that are the same for the same seed (mulberry32). */
function dice(seed: number) {
  return () => {
    seed = (seed + 0x6d2b79f5) | 0;
    let value = Math.imul(seed ^ (seed >>> 15), 1 | seed);
    value = (value + Math.imul(value ^ (value >>> 7), 61 | value)) ^ value;
    return ((value ^ (value >>> 14)) >>> 0) / 4294967296;
  };
}

test("whatever a monkey does, the page stands and nothing that was sent is lost", async ({
  page,
  chat,
  gateway,
}) => {
  test.setTimeout(ACTIONS * 6_000);
  const random = dice(SEED);
  const pick = <T>(several: readonly T[]): T => several[Math.floor(random() * several.length)]!;
  const faults: string[] = [];
  const done: string[] = [];
  const sent = new Map<string, { thread: string; run: string | undefined }>();
  const takenBack = new Set<string>();
  let offline = false;
  page.on("pageerror", (error) => faults.push(`uncaught: ${error.message}`));
  page.on("crash", () => faults.push("the page crashed"));
  page.on("dialog", (dialog) => void dialog.dismiss());
  page.on("request", (asked) => {
    const run = /runs\/([\w-]+)\/cancel\?action=rollback/.exec(asked.url())?.[1];
    if (run) takenBack.add(run);
  });
  page.on("response", (answer) => {
    if (answer.status() >= 500 && !offline) faults.push(`${answer.status()} ${answer.url()}`);
  });

  const click = async () => {
    // In one question: asking each control would take longer than what the monkey does.
    const all = await page.locator(CONTROLS).evaluateAll((controls) =>
      controls.map((control, at) => ({
        at,
        usable: control.checkVisibility({ visibilityProperty: true }) && !control.matches(":disabled"),
        name: `${control.getAttribute("aria-label") ?? ""} ${(control as HTMLElement).innerText}`,
      })),
    );
    const seen = all.filter(({ usable, name }) => usable && !FORBIDDEN.test(name));
    if (!seen.length) return "nothing to click";
    const { at, name } = pick(seen);
    const target = page.locator(CONTROLS).nth(at);
    await target.click({ timeout: 2000 }).catch(() => undefined); // it may be covered or go away: so it is for people
    return `click ${name.trim().slice(0, 40)}`;
  };
  const say = async () => {
    if (!(await chat.field.isVisible().catch(() => false))) return "nowhere to write";
    const text = `${pick(WORDS)} #${done.length}`;
    await chat.field.fill(text, { timeout: 2000 }).catch(() => undefined);
    const accepted = page
      .waitForResponse(
        (answer) =>
          answer.request().method() === "POST" &&
          (answer.request().postData() ?? "").includes(`#${done.length}`),
        { timeout: 3000 },
      )
      .catch(() => null);
    await chat.field.press("Enter", { timeout: 2000 }).catch(() => undefined);
    const answer = await accepted;
    const thread = /threads\/([\w-]+)\//.exec(answer?.url() ?? "")?.[1];
    const said = answer?.ok()
      ? ((await answer.json().catch(() => null)) as { run_id?: string } | null)
      : null;
    if (answer?.ok() && thread) sent.set(text, { thread, run: said?.run_id });
    return `say ${text.slice(0, 20)}`;
  };
  const actions: [number, () => Promise<string>][] = [
    [50, click],
    [20, say],
    [14, async () => (await page.keyboard.press(pick(KEYS)), "key")],
    [
      4,
      async () => {
        await page.goBack({ timeout: 3000 }).catch(() => null);
        if (!page.url().startsWith(gateway.url)) await page.goto("/chats");
        return "back";
      },
    ],
    [3, async () => (await page.reload(), "reload")],
    [4, async () => (await page.goto("/chats"), "home")],
    [
      3,
      async () => (
        await page.setViewportSize(
          pick([
            { width: 390, height: 800 },
            { width: 1360, height: 860 },
            { width: 820, height: 700 },
          ]),
        ),
        "size"
      ),
    ],
    [
      2,
      async () => {
        offline = true;
        await page.context().setOffline(true);
        await page.waitForTimeout(400);
        await page.context().setOffline(false);
        offline = false;
        return "offline";
      },
    ],
  ];
  const whole = actions.reduce((sum, [weight]) => sum + weight, 0);

  for (let number = 0; number < ACTIONS; number++) {
    let at = random() * whole;
    const [, act] = actions.find(([weight]) => (at -= weight) < 0)!;
    done.push(await act());
    await expectItStands(page, done);
    if (faults.length) break;
  }
  expect(faults, `after: ${done.slice(-8).join(" · ")}`).toEqual([]);
  for (const [text, { thread, run }] of sent) {
    if (run && takenBack.has(run)) continue; // a waiting message that it took back
    await expect(async () => {
      // All branches: the monkey may have edited what was before it.
      const history = await page.request.get(`${gateway.url}/api/threads/${thread}/history?limit=1000`);
      if (history.status() === 404) return; // it deleted the chat
      expect(
        (await history.text()).includes(JSON.stringify(text).slice(1, -1)),
        `“${text.slice(-20)}” is in ${thread}`,
      ).toBe(true);
    }).toPass({ timeout: 60_000 });
  }
  console.log(`${done.length} actions, ${sent.size} messages, seed ${SEED}`);
});

/** Something to see, no error page, nothing wider than the window. */
async function expectItStands(page: Page, done: string[]) {
  const last = () => `after: ${done.slice(-8).join(" · ")}`;
  await expect(page.locator("main, [role=main], [role=dialog]").first(), last()).toBeAttached();
  await expect(page.getByText(/Application error|Something went wrong|Internal error/), last()).toHaveCount(
    0,
  );
  const wider = () => page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
  await expect.poll(wider, { message: last() }).toBeLessThanOrEqual(1);
}
