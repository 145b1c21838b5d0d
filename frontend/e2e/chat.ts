import { expect, type Page } from "@playwright/test";

/** A conversation as a person uses it. */
export class Chat {
  constructor(readonly page: Page) {}

  get field() {
    return this.page.getByRole("textbox", { name: "Message", exact: true });
  }
  get log() {
    return this.page.getByRole("log");
  }
  get stop() {
    return this.page.getByRole("button", { name: "Stop the agent" });
  }

  /** Sends a message, by keyboard where there is one, and waits until it stands in the conversation. */
  async say(text: string) {
    await this.field.fill(text);
    const touch = await this.page.evaluate(() => matchMedia("(pointer: coarse)").matches);
    if (touch) await this.page.getByRole("button", { name: "Send", exact: true }).click();
    else await this.field.press("Enter");
    await expect(this.log.getByText(text, { exact: true }).last()).toBeVisible();
  }

  /** The mode that has sub-agents. */
  async ultra() {
    // A menu that is opened while the conversation is loading closes when it has.
    await expect(async () => {
      await this.page.getByRole("button", { name: /^Mode: / }).click({ timeout: 3000 });
      await this.page.getByRole("menuitemradio", { name: /^Ultra/ }).click({ timeout: 3000 });
    }).toPass();
  }

  /** Until nothing runs any more. */
  async done() {
    await expect(this.stop).toBeHidden({ timeout: 60_000 });
  }

  /** Says it and waits for the end. */
  async ask(text: string) {
    await this.say(text);
    await this.done();
  }

  /** A new conversation, without loading the page anew. */
  async fresh() {
    await this.page
      .getByRole("button", { name: "New chat" })
      .or(this.page.getByRole("link", { name: "New chat" }))
      .first()
      .click();
    await expect(this.log).toBeHidden();
  }

  sees(text: string | RegExp) {
    return expect(this.log.getByText(text).last()).toBeVisible();
  }
}

/** A new conversation, as a program makes it; `post` goes on with it. */
async function newThread(page: Page, url: string) {
  const csrf = (await page.context().cookies()).find(({ name }) => name === "csrf_token")?.value ?? "";
  const headers = { "X-CSRF-Token": csrf, Origin: url };
  const made = await page.request.post(`${url}/api/threads`, { data: { metadata: {} }, headers });
  const { thread_id: id } = (await made.json()) as { thread_id: string };
  const post = (path: string, data: object) =>
    page.request.post(`${url}/api/threads/${id}${path}`, { data, headers, timeout: 120_000 });
  return { id, post };
}

/** A conversation of one turn in which the agent may have subagents; it has ended. */
export async function askWithSubagents(page: Page, url: string, text: string): Promise<string> {
  const { id, post } = await newThread(page, url);
  const input = { messages: [{ role: "user", content: text }] };
  const answer = await post("/runs/wait", { input, context: { subagent_enabled: true } });
  expect(answer.status()).toBe(200);
  return id;
}

/** A conversation of one question and its answer. */
export async function threadOf(page: Page, url: string, question: string, answer: string): Promise<string> {
  const { id, post } = await newThread(page, url);
  const messages = [
    { type: "human", id: "h", content: question, additional_kwargs: { run_id: "r" } },
    { type: "ai", id: "a", content: answer },
  ];
  const response = await post("/state", { values: { messages }, as_node: "model" });
  expect(response.status()).toBe(200);
  return id;
}

/** A conversation of `count` messages; each answer has its number. */
export async function longThread(page: Page, url: string, count: number): Promise<string> {
  const { id, post } = await newThread(page, url);
  const messages = Array.from({ length: count / 2 }, (_, i) => [
    { type: "human", id: `h${i}`, content: `question ${i}`, additional_kwargs: { run_id: `r${i}` } },
    {
      type: "ai",
      id: `a${i}`,
      content: `**answer ${i}**\n\n- one\n- two\n\n\`\`\`python\nprint(${i})\n\`\`\`\n`,
    },
  ]).flat();
  const response = await post("/state", { values: { messages }, as_node: "model" });
  expect(response.status()).toBe(200);
  return id;
}
