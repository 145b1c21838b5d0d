import { renderHook } from "@testing-library/react";
import { expect, test } from "vitest";
import type { Turn } from "@/features/chat";
import { useWatched } from "./use-watched";

const turn = (id: string) => ({ id }) as Turn;

test("a turn that was answered meanwhile is known, one of an opened chat is not", () => {
  const opened = { running: false, turns: [turn("old")] };
  const { result, rerender } = renderHook(useWatched, { initialProps: opened });
  expect(result.current).toBeNull();
  rerender({ running: true, turns: [turn("old"), turn("new")] });
  rerender({ running: false, turns: [turn("old"), turn("new")] });
  expect(result.current).toBe("new");
});
