import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { act, renderHook } from "@testing-library/react";
import type { ReactNode } from "react";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { FoundThread } from "@/lib/api";
import { LocaleProvider } from "@/i18n";
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
const ok = () => answer(new Response("{}"));
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

test("a deleted chat is gone at once, with what this device remembered of it", async () => {
  localStorage.setItem("deerflow.draft.one", '{"text":"x"}');
  window.history.replaceState(null, "", "/chats/one");
  const work = actions().remove("one");
  await act(async () => {});
  expect(titles()).toEqual(["two"]);
  expect(window.location.pathname).toBe("/chats");
  ok();
  await act(() => work);
  expect(titles()).toEqual(["two"]);
  expect(localStorage.getItem("deerflow.draft.one")).toBeNull();
});
