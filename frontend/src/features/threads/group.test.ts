import { expect, test } from "vitest";
import { byPeriod, isDraft, toItem, type ThreadItem } from "./group";
import { marked } from "./snippet";

const at = (id: string, date: Date): ThreadItem => ({
  id,
  title: id,
  status: "idle",
  pinned: false,
  archived: false,
  updatedAt: date.toISOString(),
});

test("chats stand under the day on which they last went on, by this device's calendar", () => {
  const now = new Date(2026, 2, 29, 0, 30); // half an hour into the day
  const threads = [
    at("now", now),
    at("minutes before midnight", new Date(2026, 2, 28, 23, 50)),
    at("begin of yesterday", new Date(2026, 2, 28, 0, 0)),
    at("seven days", new Date(2026, 2, 22, 0, 0)),
    at("eight days", new Date(2026, 2, 21, 23, 59)),
  ];
  expect(byPeriod(threads, now).map(([period, found]) => [period, found.map((one) => one.id)])).toEqual([
    ["today", ["now"]],
    ["yesterday", ["minutes before midnight", "begin of yesterday"]],
    ["week", ["seven days"]],
    ["older", ["eight days"]],
  ]);
});

test("a clock ahead of ours is still today", () => {
  const now = new Date(2026, 0, 1, 12);
  expect(byPeriod([at("ahead", new Date(2026, 0, 2, 3))], now)[0]?.[0]).toBe("today");
});

test("a thread that only holds files for a message not yet sent is no chat", () => {
  const files = { thread_id: "t", status: "idle", created_at: "x", updated_at: "x", values: {} } as const;
  expect(isDraft(files)).toBe(true);
  expect(isDraft({ ...files, updated_at: "y" })).toBe(false);
  expect(isDraft({ ...files, status: "busy" })).toBe(false);
  expect(toItem({ ...files, values: { title: "  " } }).title).toBeNull();
});

test("marks count characters as the server does, not halves of emoji", () => {
  expect(marked("🦌🦌 deer", [[3, 7]])).toEqual([
    { text: "🦌🦌 ", hit: false },
    { text: "deer", hit: true },
  ]);
});
