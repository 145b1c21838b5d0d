/** Saving what was edited, unless someone else was there first. */
import type { components } from "@/lib/api-types";
import { ApiError, request } from "@/lib/http";
import { readText } from "./api";
import { fileUrl } from "@/lib/files";

export interface Text {
  text: string;
  etag: string;
}

type SaveResult = { kind: "saved"; etag: string } | { kind: "conflict"; theirs: Text } | { kind: "gone" };

/**
 * Replaces the file with `text` if it still is what `etag` stands for. If not, gives back what it is now; a file that
 * meanwhile has the very same text is as good as saved.
 */
export async function save(threadId: string, path: string, text: string, etag: string): Promise<SaveResult> {
  try {
    const answer = await request("PUT", fileUrl(threadId, path), {
      body: text,
      headers: { "If-Match": etag, "Content-Type": "text/plain; charset=utf-8" },
    });
    return { kind: "saved", etag: ((await answer.json()) as components["schemas"]["EditedArtifact"]).etag };
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    if (error.status === 404) return { kind: "gone" };
    if (error.status !== 412) throw error;
  }
  const theirs = await readText({ threadId, path, version: null });
  return theirs.text === text ? { kind: "saved", etag: theirs.etag } : { kind: "conflict", theirs };
}
