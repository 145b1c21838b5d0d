import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { act, renderHook, screen } from "@testing-library/react";
import type { ReactNode } from "react";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { FoundThread } from "@/lib/api";
import { LocaleProvider } from "@/i18n";
import { Toaster } from "@/ui/toast";
import { useHidden } from "./deletions";
import { useThreadActions } from "./use-thread-actions";
import { listKey, pinnedKey } from "./use-threads";

vi.mock("next/navigation", () => ({
  usePathname: () => "/chats/one",
  useSearchParams: () => new URLSearchParams(),
}));

const thread = (id: string, metadata = {}): FoundThread => ({
  thread_id: id,
  values: { title: id },
  metadata,
});

let client: QueryClient;
let answer: (response: Response) => void;
const no = () =>
  answer(new Response(JSON.stringify({ detail: "The database is away.", code: "x" }), { status: 503 }));

beforeEach(() => {
  client = new QueryClient();
  client.setQueryData(listKey, { pages: [[thread("one"), thread("two")]], pageParams: [0] });
  client.setQueryData(pinnedKey, []);
  vi.stubGlobal("fetch", () => new Promise<Response>((resolve) => (answer = resolve)));
});
afterEach(() => vi.unstubAllGlobals());

function actions() {
  const wrapper = ({ children }: { children: ReactNode }) => (
    <QueryClientProvider client={client}>
      <LocaleProvider>{children}</LocaleProvider>
    </QueryClientProvider>
  );
  return renderHook(() => useThreadActions(), { wrapper }).result.current;
}
const titles = () =>
  client
    .getQueryData<{ pages: FoundThread[][] }>(listKey)!
    .pages.flat()
    .map((one) => one.values?.title);
const pinned = () => client.getQueryData<FoundThread[]>(pinnedKey)!.map((one) => one.thread_id);

test("a new title is shown at once, and taken back if the server says no", async () => {
  const work = actions()
    .rename("two", "renamed")
    .catch((error: Error) => error.message);
  await act(async () => {});
  expect(titles()).toEqual(["one", "renamed"]);
  no();
  expect(await act(() => work)).toBe("The database is away.");
  expect(titles()).toEqual(["one", "two"]);
});

test("a pinned chat moves up at once, and back down if that failed", async () => {
  const work = actions()
    .pin("two", true)
    .catch(() => {});
  await act(async () => {});
  expect(pinned()).toEqual(["two"]);
  no();
  await act(() => work);
  expect(pinned()).toEqual([]);
});

test("a deleted chat is out of sight at once, and deleted when there is no more undoing it", async () => {
  localStorage.setItem("deerflow.draft.one", '{"text":"x"}');
  window.history.replaceState(null, "", "/chats/one");
  const asked = vi.fn(() => Promise.resolve(new Response("{}")));
  vi.stubGlobal("fetch", asked);
  const wrapper = ({ children }: { children: ReactNode }) => (
    <QueryClientProvider client={client}>
      <LocaleProvider>
        {children}
        <Toaster />
      </LocaleProvider>
    </QueryClientProvider>
  );
  const { result } = renderHook(() => ({ actions: useThreadActions(), hidden: useHidden() }), { wrapper });
  act(() => result.current.actions.remove(["one", "two"]));
  expect([...result.current.hidden]).toEqual(["one", "two"]);
  expect(window.location.pathname).toBe("/chats");
  act(() => screen.getByRole("button", { name: "Undo" }).click());
  expect([...result.current.hidden]).toEqual([]);
  expect(window.location.pathname).toBe("/chats/one");
  expect(asked).not.toHaveBeenCalled();

  act(() => result.current.actions.remove(["one", "two"]));
  await act(async () => screen.getAllByRole("button", { name: "Close" }).at(-1)!.click());
  const [url, sent] = asked.mock.calls[0] as unknown as [string, RequestInit];
  expect([url, sent.body]).toEqual(["/api/threads/prune", '{"thread_ids":["one","two"]}']);
  expect(localStorage.getItem("deerflow.draft.one")).toBeNull();
});

test("an archived chat is marked at once, and not if the server says no", async () => {
  const work = actions()
    .archive(["two"], true)
    .catch(() => {});
  await act(async () => {});
  const marks = () =>
    client
      .getQueryData<{ pages: FoundThread[][] }>(listKey)!
      .pages.flat()
      .map((one) => one.metadata?.archived);
  expect(marks()).toEqual([undefined, true]);
  no();
  await act(() => work);
  expect(marks()).toEqual([undefined, undefined]);
});
