import { readFileSync } from "node:fs";
import { call } from "./call";
import { expect, signIn, test } from "./fixtures";

test("memory: added, found, edited, forgotten, restored, exported, replaced", async ({ page, gateway }) => {
  await page.goto(`${gateway.url}/settings/memory`);
  await expect(page.getByText("Nothing remembered yet")).toBeVisible();
  for (const [fact, category] of [
    ["I measure in metric units.", "Preferences"],
    ["The launch is in May.", "Goals"],
  ] as const) {
    await page.getByRole("button", { name: "Add", exact: true }).click();
    const dialog = page.getByRole("dialog", { name: "Remember something" });
    await dialog.getByLabel("What to remember").fill(fact);
    await dialog.getByLabel("Category").click();
    await page.getByRole("option", { name: category }).click();
    await dialog.getByRole("button", { name: "Add" }).click();
    await expect(page.getByRole("listitem").filter({ hasText: fact })).toBeVisible();
  }
  const row = page.getByRole("listitem").filter({ hasText: "metric units" });
  await page.getByRole("searchbox", { name: "Search memory" }).fill("metric");
  await expect(page.getByRole("listitem")).toHaveCount(1);
  await row.getByRole("button", { name: /Actions for/ }).click();
  await page.getByRole("menuitem", { name: "Edit" }).click();
  await page.getByLabel("What to remember").fill("I think in metric units.");
  await page.getByRole("button", { name: "Save" }).click();
  await expect(row).toContainText("I think in metric units.");
  await row.getByRole("button", { name: /Actions for/ }).click();
  await page.getByRole("menuitem", { name: "Forget" }).click();
  await expect(page.getByText("Nothing found")).toBeVisible();
  await page.getByRole("button", { name: "Restore" }).click();
  await expect(row).toBeVisible();

  const download = page.waitForEvent("download");
  await page.getByRole("button", { name: "All of memory" }).click();
  await page.getByRole("menuitem", { name: "Export" }).click();
  const kept = await (await download).path();
  expect(readFileSync(kept, "utf8")).toContain("I think in metric units.");
  await page.getByRole("searchbox").fill("");
  await page.getByRole("button", { name: "All of memory" }).click();
  await page.getByRole("menuitem", { name: "Forget everything" }).click();
  await page.getByRole("button", { name: "Forget everything" }).click();
  await expect(page.getByText("Nothing remembered yet")).toBeVisible();
  await page.getByLabel("Import…").setInputFiles(kept);
  await page.getByRole("button", { name: "Replace" }).click();
  await expect(row).toBeVisible();
  await expect(page.getByText("The launch is in May.")).toBeVisible();
});

test("an answer shows what was remembered for it, and memory is paused for a chat", async ({
  page,
  chat,
  gateway,
}) => {
  const fact = "I sail a boat called Halcyon.";
  await call(page, gateway.url, "post", "/api/memory/facts", { content: fact, category: "preference" });
  await chat.ask("hello Halcyon");
  await chat.log.getByRole("button", { name: "Remembered" }).click();
  const used = page.getByRole("dialog", { name: "What DeerFlow remembered for this message" });
  await expect(used.getByRole("listitem").filter({ hasText: fact })).toHaveText(fact);
  await expect(used.getByRole("link", { name: "Manage memory" })).toHaveAttribute("href", "/settings/memory");
  await used.getByRole("switch", { name: "Memory in this chat" }).click();
  await expect(page.getByRole("img", { name: "Memory is paused in this chat" })).toBeVisible();
  await page.keyboard.press("Escape");

  await call(page, gateway.url, "post", "/api/memory/facts", {
    content: "Halcyon has two masts.",
    category: "correction",
  });
  await chat.ask("long 3 Halcyon");
  await expect(chat.log.getByRole("button", { name: "Remembered" })).toHaveCount(1);
  await page.reload();
  await expect(page.getByRole("img", { name: "Memory is paused in this chat" })).toBeVisible();
  await page.getByRole("button", { name: /^Context:/ }).click();
  await page.getByRole("switch", { name: "Memory in this chat" }).click();
  await expect(page.getByRole("img", { name: "Memory is paused in this chat" })).toBeHidden();
  await page.keyboard.press("Escape");
  await chat.ask("hello Halcyon again");
  const marks = chat.log.getByRole("button", { name: "Remembered" });
  await expect(marks).toHaveCount(2);
  await marks.last().click();
  await expect(used.getByText("Halcyon has two masts.")).toBeVisible();
  await expect(used.getByRole("region", { name: "Given earlier in this chat" })).toContainText(fact);
});

test("a chat with an agent of one's own goes on with it, also elsewhere and after a reload", async ({
  page,
  chat,
  gateway,
  browser,
}) => {
  const agent = { name: "writer", description: "Writes.", soul: "You never use adverbs." };
  await call(page, gateway.url, "post", "/api/agents", agent);
  const whose = async () => {
    const id = new URL(page.url()).pathname.split("/").at(-1);
    const runs = (await call(page, gateway.url, "get", `/api/threads/${id}/runs`)) as {
      agent: string | null;
    }[];
    return runs.map((run) => run.agent);
  };
  await page.reload();
  await page.getByRole("button", { name: /^Agent:/ }).click();
  await page.getByRole("menuitemradio", { name: /writer/ }).click();
  await chat.ask("hello");
  const elsewhere = await browser.newContext();
  await signIn(elsewhere, gateway.url);
  const other = await elsewhere.newPage();
  await other.goto(page.url());
  await expect(other.getByRole("button", { name: /^Agent: *writer/ })).toBeVisible();
  await other.getByRole("textbox", { name: "Message", exact: true }).fill("again");
  await other.keyboard.press("Enter");
  await expect.poll(whose).toEqual(["writer", "writer"]);
  await elsewhere.close();
  await chat.done();
  await page.reload();
  await page.getByRole("button", { name: /^Agent:/ }).click();
  await page.getByRole("menuitemradio", { name: /DeerFlow/ }).click();
  await chat.ask("and now you");
  expect(await whose()).toEqual([null, "writer", "writer"]);
});
