import { expect, type BrowserContext } from "@playwright/test";
import { EMAIL, PASSWORD } from "./server";

type Cookies = Awaited<ReturnType<BrowserContext["cookies"]>>;

/** Signs a browser in with a session of its own. */
export async function signIn(on: BrowserContext, url: string, email = EMAIL, password = PASSWORD) {
  const form = { username: email, password };
  await expect(async () => {
    const answer = await on.request.post(`${url}/api/v1/auth/login/local`, {
      form,
      headers: { Origin: url },
    });
    expect(answer.status()).toBe(200);
  }).toPass();
}

/** The administrator's session that the tests of a worker share, since checking a password takes a while. A test that ends a
 * session signs in for itself; should one end this, the next test begins another. */
export class Session {
  private cookies: Cookies = [];

  constructor(readonly url: string) {}

  async enter(context: BrowserContext) {
    await context.addCookies(this.cookies);
    if ((await context.request.get(`${this.url}/api/v1/auth/me`)).ok()) return;
    await signIn(context, this.url);
    this.cookies = await context.cookies();
  }
}
