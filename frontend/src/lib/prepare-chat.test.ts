import { beforeEach, expect, test } from "vitest";
import { draftThreadId } from "./draft-thread";
import { readDraft, writeDraft } from "./drafts";
import { prepareChat } from "./prepare-chat";

const draft = () => readDraft(draftThreadId(), true);
const wrote = (text: string) => writeDraft(draftThreadId(), true, { text, files: [] });

beforeEach(() => {
  localStorage.clear();
  sessionStorage.clear();
});

test("a skill stands before what was drafted, once", () => {
  wrote("Which month was best?");
  prepareChat({ skill: "data-analysis" });
  prepareChat({ skill: "data-analysis" });
  expect(draft().text).toBe("/data-analysis Which month was best?");
  prepareChat({ skill: "data" });
  expect(draft().text).toBe("/data /data-analysis Which month was best?");
});

test("a suggested beginning does not replace what was drafted, and files stay", () => {
  prepareChat({ agent: { name: "poet", setUp: true }, text: "Let’s begin." });
  expect(draft().text).toBe("Let’s begin.");
  const files = [{ filename: "a.csv", size: 1, path: "/mnt/user-data/uploads/a.csv" }];
  writeDraft(draftThreadId(), true, { text: "My own words", files });
  prepareChat({ agent: { name: "poet", setUp: true }, text: "Let’s begin." });
  expect(draft()).toEqual({ text: "My own words", files });
});
