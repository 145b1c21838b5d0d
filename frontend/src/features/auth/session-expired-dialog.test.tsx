import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { act, fireEvent, render, screen, waitFor } from "@testing-library/react";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { LocaleProvider } from "@/i18n";
import { http } from "@/lib/http";
import { keys } from "@/lib/keys";
import { SessionExpiredDialog } from "./session-expired-dialog";
import type { Account } from "./wire";

const ada: Account = { id: "1", email: "ada@example.com", system_role: "user", needs_setup: false };
const grace: Account = { ...ada, id: "2", email: "grace@example.com" };

/** Account of the session on the server; null if it has ended. */
let session: Account | null;
let queries: QueryClient;

const answer = (status: number, body: unknown) => new Response(JSON.stringify(body), { status });

function server(path: string, init?: RequestInit): Response {
  if (path === "/api/v1/auth/login/local") {
    const form = new URLSearchParams(String(init?.body));
    if (form.get("password") !== "right") return answer(401, { detail: "no", code: "invalid_credentials" });
    session = form.get("username") === ada.email ? ada : grace;
    return answer(200, { expires_in: 1, needs_setup: false });
  }
  if (!session) return answer(401, { detail: "ended", code: "token_expired" });
  return answer(200, path === "/api/v1/auth/me" ? session : {});
}

beforeEach(() => {
  session = ada;
  queries = new QueryClient();
  vi.stubGlobal("fetch", async (path: string, init?: RequestInit) => server(path, init));
});
afterEach(() => vi.unstubAllGlobals());

const open = () =>
  render(
    <QueryClientProvider client={queries}>
      <LocaleProvider>
        <input aria-label="draft" defaultValue="half a thought" />
        <SessionExpiredDialog />
      </LocaleProvider>
    </QueryClientProvider>,
  );
const use = () => act(() => http.get("/api/models").catch(() => undefined));
const dialog = () => screen.queryByRole("dialog");

test("signing in again closes the dialog and leaves the page as it was", async () => {
  queries.setQueryData(keys.me, ada);
  open();
  fireEvent.change(screen.getByLabelText("draft"), { target: { value: "a whole thought" } });
  session = null;
  await use();
  await waitFor(() => expect(dialog()).toBeTruthy());

  const password = screen.getByLabelText("Password");
  fireEvent.change(password, { target: { value: "wrong" } });
  fireEvent.submit(password);
  await waitFor(() => expect(screen.getByText(/Wrong email/)).toBeTruthy());

  fireEvent.change(password, { target: { value: "right" } });
  fireEvent.submit(password);
  await waitFor(() => expect(dialog()).toBeNull());
  expect(screen.getByLabelText<HTMLInputElement>("draft").value).toBe("a whole thought");
});

test("who was never signed in sees no dialog: the guard leads them to the sign-in page", async () => {
  open();
  session = null;
  await use();
  expect(dialog()).toBeNull();
});

test("the late refusal of an old request opens nothing while the session is good", async () => {
  queries.setQueryData(keys.me, ada);
  open();
  let late = true;
  vi.stubGlobal("fetch", async (path: string, init?: RequestInit) => {
    if (path !== "/api/models" || !late) return server(path, init);
    late = false;
    return answer(401, { detail: "ended", code: "token_expired" });
  });
  await use();
  await waitFor(() => expect(queries.isFetching()).toBe(0));
  expect(dialog()).toBeNull();
});

test("a session that another tab has begun anew closes the dialog when one comes back", async () => {
  queries.setQueryData(keys.me, ada);
  open();
  session = null;
  await use();
  await waitFor(() => expect(dialog()).toBeTruthy());
  session = ada;
  fireEvent(document, new Event("visibilitychange"));
  await waitFor(() => expect(dialog()).toBeNull());
});

test("another account in the same browser is told, and nothing of it is mixed into the page", async () => {
  queries.setQueryData(keys.me, ada);
  open();
  act(() => void queries.setQueryData(keys.me, grace));
  await waitFor(() => expect(dialog()?.textContent).toContain("grace@example.com"));
});
