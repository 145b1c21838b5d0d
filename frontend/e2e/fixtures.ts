import {
  test as base,
  expect,
  type APIRequestContext,
  type BrowserContext,
  type Page,
} from "@playwright/test";
import { Chat } from "./chat";
import { EMAIL, Gateway, Model, PASSWORD } from "./server";

/** Signs a browser, or a client, in. */
export async function signIn(
  on: { request: APIRequestContext } | BrowserContext,
  url: string,
  email = EMAIL,
  password = PASSWORD,
) {
  const form = { username: email, password };
  await expect(async () => {
    const answer = await on.request.post(`${url}/api/v1/auth/login/local`, {
      form,
      headers: { Origin: url },
    });
    expect(answer.status()).toBe(200);
  }).toPass();
}

/** An account beside the administrator, made by them. */
export async function addPerson(admin: Page, url: string, email: string) {
  const csrf = (await admin.context().cookies()).find(({ name }) => name === "csrf_token")?.value ?? "";
  const made = await admin.request.post(`${url}/api/v1/users`, {
    data: { email, password: PASSWORD },
    headers: { "X-CSRF-Token": csrf, Origin: url },
  });
  expect(made.status()).toBe(201);
}

type Shared = { flags: readonly string[]; model: Model; gateway: Gateway };

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
  signedIn: [true, { option: true }],
  baseURL: async ({ gateway }, use) => use(gateway.url),
  page: async ({ page, gateway, signedIn }, use) => {
    if (signedIn) {
      await signIn(page.context(), gateway.url);
      await page.goto("/chats");
    }
    await use(page);
  },
  chat: async ({ page }, use) => use(new Chat(page)),
});

export { expect };
