import type { UploadedRef } from "@/lib/drafts";

/** A file on its way to the server, or there already. */
export interface Attachment {
  id: string;
  name: string;
  size: number;
  status: "waiting" | "uploading" | "done" | "failed";
  /** 0 to 1. */
  progress: number;
  error: string | null;
  /** Null after a reload: then it can be sent along, but not uploaded again. */
  file: File | null;
  uploaded: UploadedRef | null;
  /** True if the server converts the document to text, or did when it arrived. */
  converting: boolean;
}

export const restored = (ref: UploadedRef): Attachment => ({
  id: `kept:${ref.filename}`,
  name: ref.filename,
  size: ref.size,
  status: "done",
  progress: 1,
  error: null,
  file: null,
  uploaded: ref,
  converting: false,
});

export const waiting = (file: File, id: string): Attachment => ({
  id,
  name: file.name,
  size: file.size,
  status: "waiting",
  progress: 0,
  error: null,
  file,
  uploaded: null,
  converting: false,
});

/** The ids that may begin to upload, so that no more than `parallel` do at once. */
export function toStart(all: readonly Attachment[], parallel: number): string[] {
  const going = all.filter((one) => one.status === "uploading").length;
  return all
    .filter((one) => one.status === "waiting")
    .slice(0, Math.max(0, parallel - going))
    .map((one) => one.id);
}
