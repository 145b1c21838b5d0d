import { expect, type Page } from "@playwright/test";

/** A request of the person who is signed in, beside the page. */
export async function call(
  page: Page,
  url: string,
  method: "get" | "post" | "put",
  path: string,
  data?: object,
) {
  const csrf = (await page.context().cookies()).find(({ name }) => name === "csrf_token")?.value ?? "";
  const headers = { "X-CSRF-Token": csrf, Origin: url };
  const answer = await page.request[method](`${url}${path}`, { headers, data });
  expect(answer.ok(), await answer.text()).toBe(true);
  return answer.json() as Promise<unknown>;
}
