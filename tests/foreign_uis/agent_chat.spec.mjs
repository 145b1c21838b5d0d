import { expect, test } from "@playwright/test";
import { LONG } from "./parts.mjs";
import { call, client, say, script, slowly } from "./support.mjs";

const query = new URLSearchParams({ apiUrl: process.env.DEERFLOW_URL, assistantId: "lead_agent", chatHistoryOpen: true });

test.beforeEach(async ({ page }) => {
  await page.addInitScript((token) => localStorage.setItem("lg:chat:apiKey", token), process.env.DEERFLOW_TOKEN);
  await page.goto(`/agent_chat/?${query}`);
});

async function send(page, text) {
  await page.getByPlaceholder("Type your message...").fill(text);
  await page.getByRole("button", { name: "Send", exact: true }).click();
}

/** Waits for the end, and for no complaint. */
async function done(page) {
  await expect(page.getByRole("button", { name: "Send", exact: true })).toBeVisible();
  await expect(page.getByText("An error occurred")).toBeHidden();
}

const threadOf = (page) => new URL(page.url()).searchParams.get("threadId");
const types = async (page) => (await client.threads.getState(threadOf(page))).values.messages.map((message) => message.type);

test("one fills in the form, chats, and finds the thread again", async ({ page }) => {
  await page.goto("/agent_chat/");
  await page.getByLabel("Deployment URL").fill(process.env.DEERFLOW_URL);
  await page.getByLabel("Assistant / Graph ID").fill("lead_agent");
  await page.getByLabel("LangSmith API Key").fill(process.env.DEERFLOW_TOKEN);
  await page.getByRole("button", { name: "Continue" }).click();
  const key = await script(call("ls", { path: "/mnt/user-data" }), slowly(LONG), say("Two."));
  await send(page, key);
  await expect(page.getByText(/word9 /)).toBeVisible();
  await expect(page.getByText(LONG)).toBeVisible();
  await done(page);
  await send(page, "again");
  await expect(page.getByText("Two.", { exact: true })).toBeVisible();
  await done(page);
  await page.goto(`/agent_chat/?${query}`);
  await page.getByRole("button", { name: key }).first().click();
  await expect(page.getByText(LONG)).toBeVisible();
  await expect(page.getByText("Two.", { exact: true })).toBeVisible();
});

const answers = {
  accepted: [(page) => page.getByRole("button", { name: "Accept" }).click(), '[{"type": "accept", "args": {"action": "send_mail", "args": {"to": "ada@example.com"}}}]'],
  edited: [
    async (page) => {
      await page.getByRole("textbox").filter({ hasText: "ada@example.com" }).fill("bob@example.com");
      await page.getByRole("button", { name: "Submit" }).click();
    },
    '[{"type": "edit", "args": {"action": "send_mail", "args": {"to": "bob@example.com"}}}]',
  ],
  answered: [
    async (page) => {
      await page.getByPlaceholder("Your response here...").fill("Not now.");
      await page.getByRole("button", { name: "Send Response" }).click();
    },
    '[{"type": "response", "args": "Not now."}]',
  ],
  ignored: [(page) => page.getByRole("button", { name: "Ignore" }).click(), '[{"type": "ignore", "args": null}]'],
};

for (const [what, [act, given]] of Object.entries(answers)) {
  test(`a tool's question is ${what}`, async ({ page }) => {
    await send(page, await script(call("send_mail", { to: "ada@example.com" }), say("All done.")));
    await expect(page.getByRole("button", { name: "Mark as Resolved" })).toBeVisible();
    if (what === "ignored") await page.reload();
    await act(page);
    await expect(page.getByText("All done.", { exact: true })).toBeVisible();
    await done(page);
    expect((await client.threads.getState(threadOf(page))).values.messages[2].content).toBe(`Answered: ${given}`);
  });
}

test("a message is sent while a tool's question waits", async ({ page }) => {
  await send(page, await script(call("send_mail", { to: "ada@example.com" }), say("Well then.")));
  await expect(page.getByRole("button", { name: "Mark as Resolved" })).toBeVisible();
  await send(page, "Something else.");
  await expect(page.getByText("Well then.", { exact: true })).toBeVisible();
  await done(page);
  expect(await types(page)).toEqual(["human", "ai", "tool", "human", "ai"]);
});

test("a question of the agent is answered with the next message", async ({ page }) => {
  const asked = call("ask_clarification", { question: "Which year?", clarification_type: "missing_info", options: ["2025", "2026"] });
  await send(page, await script(asked, say("2026 it is.")));
  await expect(page.getByText("Which year?").first()).toBeVisible();
  await done(page);
  await send(page, "2026");
  await expect(page.getByText("2026 it is.", { exact: true })).toBeVisible();
  await done(page);
});

test("a message is edited, an answer asked for again, and branches are gone through", async ({ page }) => {
  const key = await script(say("One."), say("Other one."), say("Third one."));
  await send(page, key);
  await expect(page.getByText("One.", { exact: true })).toBeVisible();
  await done(page);
  await page.getByRole("button", { name: "Edit" }).click();
  await page.getByRole("textbox").filter({ hasText: key }).fill(`${key} edited`);
  await page.getByRole("button", { name: "Submit" }).click();
  await expect(page.getByText("Other one.", { exact: true })).toBeVisible();
  await done(page);
  await page.getByRole("button", { name: "Refresh" }).click();
  await expect(page.getByText("Third one.", { exact: true })).toBeVisible();
  await done(page);
  await expect(page.getByText("2 / 2")).toHaveCount(2);
});

test("a run is cancelled", async ({ page }) => {
  await send(page, await script(slowly(LONG), say("Two.")));
  await expect(page.getByText(/word9 /)).toBeVisible();
  await page.getByRole("button", { name: "Cancel" }).click();
  await expect.poll(async () => (await client.threads.get(threadOf(page))).status).not.toBe("busy");
  await done(page);
  await send(page, "again");
  await expect(page.getByText("Two.", { exact: true })).toBeVisible();
});
