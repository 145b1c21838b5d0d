import { expect, type Page } from "@playwright/test";

/** A request of the person who is signed in, beside the page. */
export async function call(
  page: Page,
  url: string,
  method: "get" | "post" | "put" | "delete",
  path: string,
  data?: object,
) {
  const csrf = (await page.context().cookies()).find(({ name }) => name === "csrf_token")?.value ?? "";
  const headers = { "X-CSRF-Token": csrf, Origin: url };
  const answer = await page.request[method](`${url}${path}`, { headers, data });
  const body = await answer.text();
  expect(answer.ok(), body).toBe(true);
  return (body ? JSON.parse(body) : null) as unknown;
}
