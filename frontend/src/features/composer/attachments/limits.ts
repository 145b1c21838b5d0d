/** The gateway's limits for one message, checked before it is sent. */
export const LIMITS = { files: 20, fileBytes: 100 << 20, totalBytes: 500 << 20 } as const;

/** As the gateway counts them. */
export const megabytes = (bytes: number) => `${bytes >> 20} MB`;

/** Pasted text of more characters becomes a file: what others wrote is not taken for the person's own words. */
export const LONG_PASTE = 2000;

/** Text of more characters would make the field slow: it stays a file. */
export const HUGE_PASTE = 200_000;

export const PASTED = "pasted-text.txt";

export type Refusal = "count" | "size" | "total" | "folder" | "empty";

export interface Admission {
  accepted: File[];
  refused: { name: string; reason: Refusal }[];
}

/** Split `incoming` into files that may join `present`, and the rest with the first reason against each. */
export function admit(present: readonly { size: number }[], incoming: readonly File[]): Admission {
  let count = present.length;
  let bytes = present.reduce((sum, one) => sum + one.size, 0);
  const accepted: File[] = [];
  const refused: Admission["refused"] = [];
  for (const file of incoming) {
    const reason = reasonAgainst(file, count, bytes);
    if (reason) {
      refused.push({ name: file.name, reason });
    } else {
      accepted.push(file);
      count += 1;
      bytes += file.size;
    }
  }
  return { accepted, refused };
}

function reasonAgainst(file: File, count: number, bytes: number): Refusal | null {
  if (isBundle(file.name)) return "folder";
  if (file.size > LIMITS.fileBytes) return "size";
  if (count >= LIMITS.files) return "count";
  return bytes + file.size > LIMITS.totalBytes ? "total" : null;
}

/** Directories that macOS shows as files. */
const isBundle = (name: string) => /\.(app|bundle|framework)$/i.test(name);

/** The files and folders of a drop or paste; to be asked at once, as the browser takes them back after the event. */
export function filesOf(transfer: DataTransfer): { files: File[]; folders: FileSystemDirectoryEntry[] } {
  const files: File[] = [];
  const folders: FileSystemDirectoryEntry[] = [];
  for (const item of Array.from(transfer.items)) {
    if (item.kind !== "file") continue;
    const entry = item.webkitGetAsEntry?.();
    const file = item.getAsFile();
    if (entry?.isDirectory) folders.push(entry as FileSystemDirectoryEntry);
    else if (file) files.push(file);
  }
  return { files, folders };
}
