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
  /** Error of the request for the account, if it failed. */
  error: unknown;
  /** undefined: not asked, or no answer yet. */
  setup: SetupStatus | undefined;
  setupError: unknown;
  /** Address that the person wants to see, query included. */
  here: string;
}

/** True if a page that needs an account is shown. It stays shown: the dialog handles a session that ends. */
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
