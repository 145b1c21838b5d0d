import { expect, test } from "vitest";
import { linked } from "./guide";

test("links between pages lead to pages, others are their text", () => {
  const page = (name: string) => `${window.location.origin}/settings/about?name=${encodeURIComponent(name)}`;
  expect(linked("see [skills](skills.md#on-the-page).", "workspace")).toBe(
    `see [skills](${page("skills")}).`,
  );
  expect(linked("[Slack](channels/slack.md)", "channels")).toBe(`[Slack](${page("channels/slack")})`);
  expect(linked("[all](../channels.md), [Slack](slack.md)", "channels/email")).toBe(
    `[all](${page("channels")}), [Slack](${page("channels/slack")})`,
  );
  expect(
    linked("[file](../config.example.yaml), [below](#below), [web](https://a.example/b.md)", "web"),
  ).toBe("file, below, [web](https://a.example/b.md)");
  expect(linked("[contributors](../AGENTS.md)", "development")).toBe("contributors");
});
