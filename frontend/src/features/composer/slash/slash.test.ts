import { expect, test } from "vitest";
import { ownMessages, NOT_WALKING, step } from "../history";
import { placeholderIn } from "@/lib/compose";
import { filterSlash, skillPrefix, slashQuery } from "./slash";

test.each([
  ["/", ""],
  ["/Mo", "mo"],
  ["/模型", "模型"],
  ["/maps:Route.to", "maps:route.to"],
  ["/usr/bin", null],
  ["/new chat", null],
  [" /new", null],
  ["a/b", null],
])("%s asks for commands only at the beginning", (text, query) => expect(slashQuery(text)).toBe(query));

test("commands that begin with what is typed come before those that mention it", () => {
  const items = [
    { id: "export", label: "/export", text: "Download the model's answer" },
    { id: "mode", label: "/mode", text: "Mode" },
    { id: "model", label: "/model", text: "Choose another" },
    { id: "help", label: "/help", text: "Shortcuts" },
  ];
  expect(filterSlash(items, "mode").map((item) => item.id)).toEqual(["mode", "model", "export"]);
  expect(filterSlash(items, "zzz")).toEqual([]);
});

test("own messages are walked through from the newest, and back to what was there", () => {
  const own = ownMessages(["first", " ", "second", "second"]);
  expect(own).toEqual(["first", "second"]);
  const [one, newest] = step(NOT_WALKING, -1, own, "")!;
  const [two, oldest] = step(one, -1, own, newest)!;
  expect([newest, oldest]).toEqual(["second", "first"]);
  expect(step(two, -1, own, oldest)).toBeNull();
  const [three] = step(two, 1, own, oldest)!;
  expect(step(three, 1, own, "second")).toEqual([NOT_WALKING, ""]);
  expect(step(NOT_WALKING, 1, own, "")).toBeNull();
});

test("the part in brackets is what the person replaces", () => {
  expect(placeholderIn("Look into [topic] for [whom]")).toEqual([10, 17]);
  expect(placeholderIn("Nothing")).toEqual([7, 7]);
});

test.each([
  ["/weather in Oslo", "/weather "],
  ["/天气 奥斯陆", "/天气 "],
  ["/weather\nOslo", "/weather\n"],
  ["/weather", ""],
  ["/weathers in Oslo", ""],
  ["in /weather x", ""],
])("%j begins with the skill %j", (text, prefix) =>
  expect(skillPrefix(text, ["weather", "天气"])).toBe(prefix),
);
