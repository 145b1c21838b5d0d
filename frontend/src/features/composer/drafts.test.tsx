import { act, renderHook } from "@testing-library/react";
import { expect, test, vi } from "vitest";
import { forgetDraft, readDraft, restoreDraft, writeDraft, type Draft } from "@/lib/drafts";
import { useDraftKeeper } from "./use-draft-keeper";

const FILE = { filename: "a.csv", size: 3, path: "/mnt/user-data/uploads/a.csv" };

test("what was written is there after a reload, each conversation's own", () => {
  writeDraft("t1", false, { text: "hello", files: [FILE] });
  writeDraft("t2", false, { text: "other", files: [] });
  expect(readDraft("t1", false)).toEqual({ text: "hello", files: [FILE] });
  forgetDraft("t1");
  expect(readDraft("t1", false)).toEqual({ text: "", files: [] });
  expect(readDraft("t2", false).text).toBe("other");
});

test("the text of a new conversation outlives its tab; files of another conversation do not come along", () => {
  writeDraft("born-in-tab-1", true, { text: "an idea", files: [FILE] });
  expect(readDraft("born-in-tab-1", true).files).toEqual([FILE]);
  expect(readDraft("born-in-tab-2", true)).toEqual({ text: "an idea", files: [] });
});

test("the last letters are kept even if the page goes away at once", () => {
  const { rerender, unmount } = renderHook((draft: Draft) => useDraftKeeper("t1", false, draft, () => {}), {
    initialProps: { text: "", files: [] },
  });
  rerender({ text: "half a sent", files: [] });
  unmount();
  expect(readDraft("t1", false).text).toBe("half a sent");
});

test("a message that could not be sent comes back to its field", () => {
  const back = vi.fn();
  renderHook(() => useDraftKeeper("t1", false, { text: "", files: [] }, back));
  act(() => restoreDraft("t2", { text: "not here", files: [] }));
  act(() => restoreDraft("t1", { text: "again", files: [FILE] }));
  expect(back).toHaveBeenCalledExactlyOnceWith({ text: "again", files: [FILE] });
});
