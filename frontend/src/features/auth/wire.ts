import * as api from "@/lib/api";
import type { components } from "@/lib/api-types";
import { http, request } from "@/lib/http";
import { forgetOwn, setOwner } from "@/lib/storage";

export type Account = api.Account;
/** `code_required`: the first account needs the code that the server printed, since strangers can reach the server. */
export type SetupStatus = api.SetupStatus;

/** From then on this page keeps what is personal for that account. */
export async function me(): Promise<Account> {
  const account = await api.me();
  setOwner(account.id);
  return account;
}
export const setupStatus: () => Promise<SetupStatus> = api.setupStatus;

export async function signIn(email: string, password: string): Promise<components["schemas"]["SessionInfo"]> {
  const body = new URLSearchParams({ username: email, password });
  const answer = await request("POST", "/api/v1/auth/login/local", { body });
  return (await answer.json()) as components["schemas"]["SessionInfo"];
}

export const register = (email: string, password: string) =>
  http.post<Account>("/api/v1/auth/register", { email, password });

export const initialize = (email: string, password: string, code: string | null) =>
  http.post<Account>("/api/v1/auth/initialize", {
    email,
    password,
    ...(code === null ? {} : { setup_code: code }),
  });

/** Of one's own account; the session goes on. */
export const changePassword = (current: string, next: string, endSessions: boolean) =>
  http.post("/api/v1/auth/change-password", {
    current_password: current,
    new_password: next,
    end_sessions: endSessions,
  });

export async function signOut(everywhere = false): Promise<void> {
  await http.post(`/api/v1/auth/logout${everywhere ? "?everywhere=true" : ""}`);
  leave();
}

/** The session has ended: nothing of the account stays on the device. */
export function leave() {
  forgetOwn();
  loadPage("/login");
}

/** Not a navigation within the page: nothing of the account stays in memory. */
export const loadPage = (path: string) => window.location.assign(path);
