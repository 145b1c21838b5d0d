import { renderHook } from "@testing-library/react";
import { expect, it, vi } from "vitest";
import { SessionContext, type Session, type Turn } from "@/features/chat";
import { useDelivered } from "./use-delivered";

type Seen = { running: boolean; turns: readonly Pick<Turn, "id" | "state" | "presented">[] };

/** Paths that are shown while the page sees these one after the other. */
function shown(...seen: readonly Seen[]) {
  const show = vi.fn();
  let session = seen[0]!;
  const { rerender } = renderHook(() => useDelivered(show), {
    wrapper: ({ children }) => <SessionContext value={session as Session}>{children}</SessionContext>,
  });
  for (session of seen.slice(1)) rerender();
  return show.mock.calls.flat();
}

const turn = (state: Turn["state"], ...presented: string[]) => [{ id: "1", state, presented }];
const running = { running: true, turns: turn("running") };
const done = (...files: string[]) => ({ running: false, turns: turn("done", ...files) });

it("shows the one file of a run that was watched, once", () => {
  expect(shown(running, done("a.md"), done("a.md"))).toEqual(["a.md"]);
});

it("shows a file that arrives after the end of its run", () => {
  expect(shown(running, done(), done("a.md"), done("a.md"))).toEqual(["a.md"]);
});

it("shows nothing of a run that had ended before, or delivered several files", () => {
  expect(shown(done("a.md"))).toEqual([]);
  expect(shown(running, done("a.md", "b.md"))).toEqual([]);
});

it("shows nothing of another turn than the one that was watched", () => {
  const other = { running: false, turns: [{ id: "2", state: "done", presented: ["b.md"] }] } satisfies Seen;
  expect(shown(running, done(), other)).toEqual([]);
});
