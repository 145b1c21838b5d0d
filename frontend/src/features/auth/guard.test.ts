import { describe, expect, test } from "vitest";
import { ApiError } from "@/lib/http";
import { safeNext } from "@/lib/route";
import { decide, loginPath, type GuardFacts } from "./guard";
import type { SetupStatus } from "./wire";

const setup = (facts: Partial<SetupStatus> = {}): SetupStatus => ({
  needs_setup: false,
  registration: false,
  registration_enabled: false,
  authentication: true,
  code_required: false,
  ...facts,
});
const refused = new ApiError("Authentication required.", 401, "not_authenticated");
const gone = new ApiError("The server cannot be reached.", 0, "unreachable");
const facts = (given: Partial<GuardFacts>): GuardFacts => ({
  known: false,
  error: null,
  setup: undefined,
  setupError: null,
  here: "/chats/abc?panel=a.md",
  ...given,
});

describe("the guard", () => {
  test("shows the page to who is signed in, and keeps showing it when the session ends", () => {
    expect(decide(facts({ known: true }))).toEqual({ kind: "show" });
    expect(decide(facts({ known: true, error: refused, setup: setup() }))).toEqual({ kind: "show" });
    expect(decide(facts({ known: true, error: gone }))).toEqual({ kind: "show" });
  });

  test("waits until both answers are there", () => {
    expect(decide(facts({}))).toEqual({ kind: "wait" });
    expect(decide(facts({ error: refused }))).toEqual({ kind: "wait" });
  });

  test("sends strangers to the sign-in page, with the way back", () => {
    const to = decide(facts({ error: refused, setup: setup() }));
    expect(to).toEqual({ kind: "go", to: "/login?next=%2Fchats%2Fabc%3Fpanel%3Da.md" });
  });

  test("sends everybody to the setup page while there is no administrator", () => {
    const to = decide(facts({ error: refused, setup: setup({ needs_setup: true }) }));
    expect(to).toEqual({ kind: "go", to: "/setup" });
  });

  test("tells a server that is away from one that answers with an error", () => {
    const proxy = new ApiError("Bad gateway", 502, "error");
    const broken = new ApiError("Internal error", 500, "internal");
    expect(decide(facts({ error: gone }))).toEqual({ kind: "unreachable" });
    expect(decide(facts({ error: proxy }))).toEqual({ kind: "unreachable" });
    expect(decide(facts({ error: refused, setupError: gone }))).toEqual({ kind: "unreachable" });
    expect(decide(facts({ error: broken }))).toEqual({ kind: "failed", error: broken });
  });
});

test("the way back leads only to pages of our own", () => {
  const roundTrip = (here: string) =>
    safeNext(new URLSearchParams(loginPath(here).split("?")[1]).get("next"));
  expect(roundTrip("/chats/a b?panel=x&y=1")).toBe("/chats/a%20b?panel=x&y=1");
  expect(roundTrip("/chats")).toBe("/chats");
  for (const evil of [
    "https://evil.example",
    "//evil.example",
    "/\\evil.example",
    "\\\\evil.example",
    "javascript:alert(1)",
    "/\t/evil.example",
    "/\n/evil.example",
    "",
    " //evil.example",
  ])
    expect(new URL(safeNext(evil), "http://localhost:3000").origin, JSON.stringify(evil)).toBe(
      "http://localhost:3000",
    );
});
