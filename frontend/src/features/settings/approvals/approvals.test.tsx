import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { render, screen } from "@testing-library/react";
import { afterEach, expect, it, vi } from "vitest";
import { LateTexts, LocaleProvider } from "@/i18n";
import ApprovalsSection from ".";
import type { Grant } from "./api";
import { approvals } from "./section";

afterEach(() => vi.unstubAllGlobals());

const grant = (given: Partial<Grant>): Grant => ({
  id: given.tool || "host",
  agent: null,
  tool: "",
  thread_id: null,
  pattern: null,
  digest: "",
  destination: null,
  created_at: "2026-01-01T00:00:00Z",
  ...given,
});

it("says which grants have expired, and which hosts a chat may reach", async () => {
  const grants = [
    grant({ tool: "old_pay", digest: null }),
    grant({ tool: "shop_pay", digest: "d", pattern: { to: "friend", amount: null } }),
    grant({ destination: "evil.example", thread_id: "t" }),
  ];
  vi.stubGlobal("fetch", async (url: string) =>
    Response.json(url.includes("search") ? [{ thread_id: "t", values: { title: "Trip" } }] : { grants }),
  );
  render(
    <QueryClientProvider client={new QueryClient()}>
      <LocaleProvider>
        <LateTexts of={approvals.texts}>
          <ApprovalsSection />
        </LateTexts>
      </LocaleProvider>
    </QueryClientProvider>,
  );
  const rows = (await screen.findAllByRole("listitem")).map((row) => row.textContent);
  expect(rows[0]).toMatch(/^old_payexpired.*Give it again when you are asked/);
  expect(rows[1]).toMatch(/^shop_payonly like: to: friend, amount: any/);
  expect(rows[1]).not.toContain("expired");
  expect(rows[2]).toMatch(/^This chat may reach evil.example/);
  expect(screen.getByRole("button", { name: "Revoke: evil.example" })).toBeTruthy();
});
