import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { ApiError } from "@/lib/http";
import { readText } from "./api";
import { save } from "./editing";

/** The server's file: every write makes another tag, and only who knows the present one may write. */
let file: { text: string; tag: number } | null;
const etag = () => `"${file!.tag}"`;

beforeEach(() => {
  file = { text: "first", tag: 1 };
  vi.stubGlobal("fetch", async (_: string, init: RequestInit) => {
    if (!file) return new Response('{"detail":"Artifact not found"}', { status: 404 });
    const headers = new Headers(init.headers);
    if (init.method === "PUT") {
      if (headers.get("if-match") !== etag())
        return new Response('{"code":"precondition_failed"}', { status: 412 });
      file = { text: String(init.body), tag: file.tag + 1 };
      return Response.json({ etag: etag() });
    }
    if (init.method === "GET" && file.text === "") return new Response("{}", { status: 416 });
    return new Response(init.method === "HEAD" ? null : file.text, {
      status: 200,
      headers: { etag: etag() },
    });
  });
});
afterEach(() => vi.unstubAllGlobals());

const saved = (text: string, tag: string) => save("t", "/mnt/user-data/outputs/a.md", text, tag);
const read = () => readText({ threadId: "t", path: "/mnt/user-data/outputs/a.md", version: null });

it("saves again and again with the tag of the save before", async () => {
  const first = await saved("mine", (await read()).etag);
  expect(first).toEqual({ kind: "saved", etag: '"2"' });
  expect(await saved("mine too", '"2"')).toEqual({ kind: "saved", etag: '"3"' });
  expect(file?.text).toBe("mine too");
});

it("overwrites nothing that it has not shown, and shows it", async () => {
  const mine = await read();
  file = { text: "the agent's", tag: 2 };
  const result = await saved("mine", mine.etag);
  expect(result).toEqual({ kind: "conflict", theirs: { text: "the agent's", etag: '"2"' } });
  expect(file.text).toBe("the agent's");
});

it("saves mine over theirs once that was chosen, and asks again if they were quicker once more", async () => {
  file = { text: "theirs", tag: 2 };
  const conflict = await saved("mine", '"1"');
  if (conflict.kind !== "conflict") throw new Error("expected a conflict");
  file = { text: "theirs again", tag: 3 };
  expect(await saved("mine", conflict.theirs.etag)).toMatchObject({
    kind: "conflict",
    theirs: { text: "theirs again" },
  });
  expect(await saved("mine", '"3"')).toEqual({ kind: "saved", etag: '"4"' });
  expect(file.text).toBe("mine");
});

it("sees no conflict where both wrote the same", async () => {
  file = { text: "same", tag: 2 };
  expect(await saved("same", '"1"')).toEqual({ kind: "saved", etag: '"2"' });
});

it("says when the file is gone, and lets other failures through", async () => {
  file = null;
  expect(await saved("mine", '"1"')).toEqual({ kind: "gone" });
  vi.stubGlobal("fetch", async () => new Response('{"detail":"The disk is full."}', { status: 507 }));
  await expect(saved("mine", '"1"')).rejects.toThrow(new ApiError("The disk is full.", 507, "error"));
});

it("reads an empty file, of which there is no part", async () => {
  file = { text: "", tag: 5 };
  expect(await read()).toEqual({ text: "", etag: '"5"' });
});
