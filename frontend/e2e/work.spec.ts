import type { Locator } from "@playwright/test";
import { Chat } from "./chat";
import { expect, signIn, test } from "./fixtures";
import { Gateway } from "./server";

test("work is grouped into steps that open, and delivered files into cards", async ({ page, chat }) => {
  await chat.ask("write");
  await chat.sees("The report is ready");
  await page.getByRole("button", { name: /Wrote a file, edited a file/ }).click();
  await page.getByRole("button", { name: /Thought/ }).click();
  await chat.sees("A short report needs a table");
  await page
    .getByRole("button", { name: /Make it precise|Edited/ })
    .first()
    .click();
  await chat.sees("34 %");
  await expect(page.getByRole("heading", { name: "Sales in spring" })).toBeVisible(); // a single file opens by itself
  await expect(page).toHaveURL(/panel=/);
});

test("an answer shows its receipts", async ({ page, chat }) => {
  await chat.ask("write");
  await chat.log.getByRole("button", { name: "Verified" }).click();
  const receipts = page.getByRole("dialog", { name: "Evidence" });
  await expect(receipts).toContainText("DeerFlow checked what this answer rests on, and it holds.");
  await expect(receipts.getByRole("region", { name: "Files" })).toContainText(
    /report\.md\s*SHA-256 [0-9a-f]{12}/,
  );
  await page.keyboard.press("Escape");
  await chat.ask("fail");
  await chat.log.getByRole("button", { name: "Evidence" }).click();
  await expect(receipts.getByRole("region", { name: "Commands" })).toContainText("exit code 3");
});

test("what one opens stays where it is", async ({ page, chat }) => {
  await chat.ask("markdown");
  await chat.ask("write");
  const line = page.getByRole("button", { name: /Wrote a file, edited a file/ });
  const before = await restingPlace(line);
  await line.click();
  await chat.sees(/Make it precise/);
  expect((await line.boundingBox())!.y).toBeCloseTo(before, 0);
});

/** Where it is, from above, once the end of the answer has stopped moving it. */
async function restingPlace(line: Locator): Promise<number> {
  let [y, same] = [NaN, 0];
  await expect(async () => {
    const now = (await line.boundingBox())!.y;
    same = now === y ? same + 1 : 0;
    y = now;
    expect(same).toBeGreaterThan(5);
  }).toPass({ intervals: [150], timeout: 20_000 });
  return y;
}

test("a command shows its output while it works", async ({ chat }) => {
  await chat.say("slow 400");
  await chat.sees(/step 3 of 400/);
  await chat.sees(/step 6 of 400/);
  await chat.stop.click();
  await chat.done();
});

test("a failed tool is seen without opening anything", async ({ chat }) => {
  await chat.ask("fail");
  await chat.sees(/failed/);
});

test("thinking can be opened", async ({ page, chat }) => {
  await chat.ask("think");
  await page.getByRole("button", { name: /Thought/ }).click();
  await chat.sees("Then I weigh two ways");
});

test("the plan is docked and ticked off", async ({ page, chat }) => {
  await chat.say("plan");
  await expect(page.getByText("Compute the totals").last()).toBeVisible();
  await chat.done();
  await chat.sees("All three steps are done.");
});

test("a question of the agent is answered with one click", async ({ page, chat }) => {
  await chat.ask("ask");
  await chat.sees("Which format should the report have?");
  await page.getByRole("button", { name: "PDF", exact: true }).click();
  await chat.sees("I am a scripted model");
});

test("suggestions follow an answer and can be taken", async ({ page, chat }) => {
  await chat.ask("hello");
  await page.getByRole("button", { name: "Show the numbers as a chart" }).click();
  await chat.sees("Show the numbers as a chart");
});

test.describe("a decision", () => {
  test("survives a reload, and allows", async ({ page, chat }) => {
    await chat.ask("approve echo precious");
    await expect(page.getByRole("button", { name: "Allow", exact: true })).toBeVisible();
    await page.reload();
    await page.getByRole("button", { name: "Allow", exact: true }).click();
    await chat.sees(/The tool said: precious/);
  });

  test("allows something else", async ({ page, chat }) => {
    await chat.ask("approve echo one");
    await page.getByRole("button", { name: "Change", exact: true }).click();
    await page.getByRole("textbox", { name: /command/i }).fill("echo another");
    await page.getByRole("button", { name: "Allow with changes" }).click();
    await chat.sees(/Understood.*another/);
  });

  test("is no, with a reason", async ({ page, chat }) => {
    await chat.ask("approve rm -rf everything");
    await page.getByRole("button", { name: "Don’t allow" }).click();
    await page.getByRole("textbox", { name: "Note to the agent" }).fill("Too dangerous.");
    await page.getByRole("button", { name: "Don’t allow" }).last().click();
    await chat.sees(/Too dangerous/);
    await chat.sees(/Understood/);
  });

  test("about two calls at once may be yes and no", async ({ page, chat }) => {
    await chat.ask("approve echo welcome // rm -rf everything");
    const card = page.getByRole("alertdialog", { name: "2 decisions are needed" });
    await card.getByRole("button", { name: "Allow", exact: true }).first().click();
    await expect(card.getByText("1 left to decide")).toBeVisible();
    await expect(card.getByRole("button", { name: "Send 2 decisions" })).toBeDisabled();
    await card.getByRole("button", { name: "Don’t allow" }).click();
    await card.getByRole("textbox", { name: "Note to the agent" }).fill("Too dangerous.");
    await card.getByRole("button", { name: "Don’t allow" }).click();
    await card.getByRole("button", { name: "Send 2 decisions" }).click();
    await chat.sees(/Understood.*welcome/);
    await chat.sees(/Understood.*Too dangerous/);
    await expect(card).toBeHidden();
  });
});

test("errors say what to do, and can be tried again", async ({ page, chat }) => {
  await chat.ask("error 401");
  await chat.sees("The provider rejected the API key");
  await expect(page.getByRole("button", { name: /try again/i }).first()).toBeVisible();
});

test("Markdown, mathematics, diagrams, tables and code are drawn", async ({ page, chat }) => {
  const foreign: string[] = [];
  page.on(
    "request",
    (request) => !request.url().startsWith("http://localhost") && foreign.push(request.url()),
  );
  await chat.ask("markdown");
  await expect(chat.log.getByRole("cell", { name: "1,200" })).toBeVisible();
  await expect(chat.log.locator(".katex").first()).toBeVisible();
  await isDrawn(chat.log.getByRole("img", { name: "Diagram" }));
  expect(foreign.filter((url) => !url.startsWith("data:") && !url.startsWith("blob:"))).toEqual([]);
});

test("a diagram loads nothing from elsewhere, with no policy of the page to forbid it", async ({
  browser,
  gateway,
  session,
}) => {
  const context = await browser.newContext({ bypassCSP: true });
  const page = await context.newPage();
  const foreign: string[] = [];
  await context.route(/elsewhere/, (route) => (foreign.push(route.request().url()), route.abort()));
  await session.enter(context);
  await page.goto(`${gateway.url}/chats`);
  const chat = new Chat(page);
  await chat.ask("diagram");
  await isDrawn(chat.log.getByRole("img", { name: "Diagram" }).first());
  const second = chat.log.getByRole("img", { name: "Diagram" }).nth(1);
  await expect(second.or(chat.log.getByText("Couldn’t draw this diagram"))).toBeVisible();
  expect(foreign).toEqual([]);
  await context.close();
});

const isDrawn = (picture: Locator) =>
  expect
    .poll(() => picture.evaluate((image: HTMLImageElement) => image.complete && image.naturalWidth))
    .toBeGreaterThan(100);

test.describe("the clipboard", () => {
  test.use({ permissions: ["clipboard-read", "clipboard-write"] });

  test("an answer is copied as Markdown, and as HTML for programs that take it", async ({ page, chat }) => {
    await chat.ask("markdown");
    await page.getByRole("button", { name: "Copy answer" }).last().click();
    await expect(page.getByRole("button", { name: "Copied" }).last()).toBeVisible();
    const [plain, html] = await page.evaluate(async () => {
      const [item] = await navigator.clipboard.read();
      return Promise.all(["text/plain", "text/html"].map(async (type) => (await item!.getType(type)).text()));
    });
    expect(plain).toContain("| North  | 1,200 | 12 %   |");
    expect(html).toMatch(/<td[^>]*>North<\/td>/);
    expect(html).not.toContain("<button");
  });
});

test("tokens and money are told per answer and conversation", async ({ page, chat }) => {
  await chat.ask("hello");
  await chat.sees(/tokens · \$/);
  await expect(page.getByRole("banner").getByText(/^\$/)).toBeVisible();
});

test("without a model the demo says what it is, and delivers a file within a minute @nightly", async ({
  browser,
  model,
}) => {
  const gateway = await new Gateway(model.url, ["--demo"]).start();
  const context = await browser.newContext();
  try {
    await signIn(context, gateway.url);
    const page = await context.newPage();
    const chat = new Chat(page);
    await page.goto(`${gateway.url}/chats`);
    await expect(page.getByRole("heading", { name: "Connect a model to get started" })).toBeVisible();
    await expect(page.getByRole("link", { name: "Connect a model" })).toBeVisible();
    await page.getByRole("button", { name: "Watch the demo" }).click();
    await chat.sees("Look around the sandbox and write a short report.");
    const panel = page.getByRole("region", { name: "Files of this conversation" });
    await expect(panel.getByRole("heading").first()).toBeVisible({ timeout: 60_000 });
    await expect(page).toHaveURL(/demo-report\.md/);
  } finally {
    await context.close();
    await gateway.stop();
  }
});

test("what has to be decided is in sight, whatever stood there before", async ({ chat }) => {
  await chat.ask("plan");
  await chat.ask("ask");
  await chat.ask("approve echo 1");
  await expect(chat.log.getByRole("button", { name: "Allow", exact: true })).toBeInViewport({ ratio: 1 });
});
