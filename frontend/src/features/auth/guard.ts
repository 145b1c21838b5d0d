import { ApiError, isUnreachable } from "@/lib/http";
import type { SetupStatus } from "./wire";

export type Decision =
  | { kind: "show" }
  | { kind: "wait" }
  | { kind: "go"; to: string }
  | { kind: "unreachable" }
  | { kind: "failed"; error: unknown };

export interface GuardFacts {
  /** Somebody was seen signed in since this page was opened. */
  known: boolean;
  /** What asking for the account failed with, if it failed. */
  error: unknown;
  /** undefined: not asked, or no answer yet. */
  setup: SetupStatus | undefined;
  setupError: unknown;
  /** Where the person wants to go, query included. */
  here: string;
}

/** Whether a page that needs an account is shown. Once it was shown it stays: a session that ends is for the dialog. */
export function decide({ known, error, setup, setupError, here }: GuardFacts): Decision {
  if (known) return { kind: "show" };
  if (!error) return { kind: "wait" };
  if (isUnauthenticated(error)) {
    if (setup) return { kind: "go", to: setup.needs_setup ? "/setup" : loginPath(here) };
    return setupError ? troubleOf(setupError) : { kind: "wait" };
  }
  return troubleOf(error);
}

export const isUnauthenticated = (error: unknown) => error instanceof ApiError && error.status === 401;

export const loginPath = (here: string) =>
  here === "/" || here === "/chats" ? "/login" : `/login?next=${encodeURIComponent(here)}`;

const troubleOf = (error: unknown): Decision =>
  isUnreachable(error) ? { kind: "unreachable" } : { kind: "failed", error };
