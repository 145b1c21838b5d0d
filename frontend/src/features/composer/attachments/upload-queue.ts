import { threadApi, type UploadedFile } from "@/lib/api";
import { http, upload } from "@/lib/http";
import type { UploadedRef } from "@/lib/drafts";
import { restored, toStart, waiting, type Attachment } from "./attachment";
import { admit, type Admission } from "./limits";

const PARALLEL = 3;

/** The files of the message that is being written. Each goes to the server at once, by itself. */
export class UploadQueue {
  private all: readonly Attachment[];
  private readonly listeners = new Set<() => void>();
  private readonly going = new Map<string, AbortController>();
  private number = 0;

  constructor(
    private readonly threadId: string,
    kept: readonly UploadedRef[],
  ) {
    this.all = kept.map(restored);
  }

  getSnapshot = () => this.all;

  subscribe = (listener: () => void) => {
    this.listeners.add(listener);
    return () => {
      this.listeners.delete(listener);
    };
  };

  /** Gives back what was refused, and why. */
  add(files: readonly File[]): Admission["refused"] {
    const { accepted, refused } = admit(this.all, files);
    this.set([...this.all, ...accepted.map((file) => waiting(file, `file:${(this.number += 1)}`))]);
    return refused;
  }

  remove(id: string) {
    this.going.get(id)?.abort();
    const gone = this.all.find((one) => one.id === id);
    this.set(this.all.filter((one) => one.id !== id));
    if (gone?.uploaded) void this.forget(gone.uploaded.filename);
  }

  retry(id: string) {
    this.change(id, { status: "waiting", progress: 0, error: null });
  }

  /** They belong to a message now. */
  clear() {
    this.set([]);
  }

  /** Gives files back that a message could not take along. */
  restore(files: readonly UploadedRef[]) {
    const back = files.map(restored).filter(({ id }) => this.all.every((one) => one.id !== id));
    this.set([...back, ...this.all]);
  }

  /** The composer is gone: active uploads are cancelled. */
  stop() {
    this.going.forEach((control) => control.abort());
  }

  /** Comes true when nothing is under way, whether it arrived or failed. */
  settled(): Promise<void> {
    return new Promise((resolve) => {
      const look = () => {
        if (isUploading(this.all)) return;
        this.listeners.delete(look);
        resolve();
      };
      this.listeners.add(look);
      look();
    });
  }

  private set(all: readonly Attachment[]) {
    const ids = new Set(toStart(all, PARALLEL));
    this.all = all.map((one) => (ids.has(one.id) ? { ...one, status: "uploading" } : one));
    for (const one of this.all) if (ids.has(one.id) && one.file) void this.send(one.id, one.file);
    this.listeners.forEach((f) => f());
  }

  private change(id: string, patch: Partial<Attachment>) {
    this.set(this.all.map((one) => (one.id === id ? { ...one, ...patch } : one)));
  }

  private async send(id: string, file: File) {
    const control = new AbortController();
    this.going.set(id, control);
    const form = new FormData();
    form.append("files", file, file.name);
    try {
      const onProgress = (progress: number) => this.change(id, { progress });
      const path = threadApi(this.threadId, "/uploads");
      const answer = await upload<{ files: UploadedFile[] }>(path, form, {
        onProgress,
        signal: control.signal,
      });
      const saved = answer.files[0]!;
      const uploaded = { filename: saved.filename, size: file.size, path: saved.path };
      const converting = saved.conversion === "running";
      this.change(id, { status: "done", progress: 1, name: saved.filename, uploaded, converting });
    } catch (error) {
      if (!control.signal.aborted) this.change(id, { status: "failed", error: (error as Error).message });
    } finally {
      this.going.delete(id);
    }
  }

  private async forget(filename: string) {
    try {
      await http.delete(threadApi(this.threadId, `/uploads/${encodeURIComponent(filename)}`));
    } catch {
      // It stays in the thread's files; the message does not name it.
    }
  }
}

export const isUploading = (all: readonly Attachment[]) =>
  all.some((one) => one.status === "waiting" || one.status === "uploading");
