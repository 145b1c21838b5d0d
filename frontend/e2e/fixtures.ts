import { test as base, expect, type Page } from "@playwright/test";
import { Chat } from "./chat";
import { Gateway, Model, PASSWORD } from "./server";
import { Session, signIn } from "./session";

/** An account beside the administrator, made by them. */
export async function addPerson(admin: Page, url: string, email: string) {
  const csrf = (await admin.context().cookies()).find(({ name }) => name === "csrf_token")?.value ?? "";
  const made = await admin.request.post(`${url}/api/v1/users`, {
    data: { email, password: PASSWORD },
    headers: { "X-CSRF-Token": csrf, Origin: url },
  });
  expect(made.status()).toBe(201);
}

type Shared = { flags: readonly string[]; model: Model; gateway: Gateway; session: Session };

/** `page` is signed in and begins at `/chats`. All tests of a file share model and gateway, which is started with `flags`. */
export const test = base.extend<{ signedIn: boolean; chat: Chat }, Shared>({
  flags: [[], { scope: "worker", option: true }],
  model: [
    async ({}, use) => {
      const model = await new Model().start();
      await use(model);
      await model.stop();
    },
    { scope: "worker", timeout: 100_000 },
  ],
  gateway: [
    async ({ model, flags }, use) => {
      const gateway = await new Gateway(model.url, flags).start();
      await use(gateway);
      await gateway.stop();
    },
    { scope: "worker", timeout: 100_000 },
  ],
  session: [async ({ gateway }, use) => use(new Session(gateway.url)), { scope: "worker" }],
  signedIn: [true, { option: true }],
  baseURL: async ({ gateway }, use) => use(gateway.url),
  page: async ({ page, session, signedIn }, use) => {
    if (signedIn) {
      await session.enter(page.context());
      await page.goto("/chats");
    }
    await use(page);
  },
  chat: async ({ page }, use) => use(new Chat(page)),
});

export { expect, signIn };
