"use client";
import { useEffect, useState, useSyncExternalStore } from "react";
import type { UploadedRef } from "@/lib/drafts";
import { isUploading, UploadQueue } from "./upload-queue";

/** `queue` to change them; the rest is how they stand. */
export function useAttachments(threadId: string, kept: readonly UploadedRef[]) {
  const [queue] = useState(() => new UploadQueue(threadId, kept));
  const all = useSyncExternalStore(queue.subscribe, queue.getSnapshot, queue.getSnapshot);
  useEffect(() => () => queue.stop(), [queue]);
  return {
    queue,
    all,
    uploading: isUploading(all),
    failed: all.some((one) => one.status === "failed"),
    ready: all.flatMap((one) => (one.uploaded ? [one.uploaded] : [])),
  };
}

export type Attachments = ReturnType<typeof useAttachments>;
