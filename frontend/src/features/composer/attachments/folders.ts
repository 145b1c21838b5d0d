import type { Admission } from "./limits";

export interface FoundFiles {
  files: File[];
  /** There are more than were read. */
  more: boolean;
  refused: Admission["refused"];
}

/** A message takes few files: who drops a whole disk needs no complete count. */
const MOST = 1000;
/** Longest name that file systems, and the gateway, accept. */
const NAME_BYTES = 255;

/** The files in folders that were dropped, top level first, without those that begin with a dot. */
export async function readFolders(folders: readonly FileSystemDirectoryEntry[]): Promise<FoundFiles> {
  const found: FoundFiles = { files: [], more: false, refused: [] };
  for (const folder of folders) {
    const before = found.files.length;
    try {
      await walk(folder, found);
      if (found.files.length === before && !found.more) refuse(found, folder, "empty");
    } catch {
      refuse(found, folder, "folder");
    }
  }
  return found;
}

async function walk(folder: FileSystemDirectoryEntry, found: FoundFiles) {
  const waiting = [folder];
  for (let next = waiting.shift(); next; next = waiting.shift()) {
    for (const entry of await entriesOf(next)) {
      if (entry.isDirectory) waiting.push(entry as FileSystemDirectoryEntry);
      else if (found.files.length >= MOST) found.more = true;
      else found.files.push(flat(await fileOf(entry as FileSystemFileEntry), entry.fullPath.slice(1)));
    }
    if (found.more) return;
  }
}

/** In order of their names, hidden ones left out; browsers give them in portions. */
async function entriesOf(folder: FileSystemDirectoryEntry): Promise<FileSystemEntry[]> {
  const reader = folder.createReader();
  const all: FileSystemEntry[] = [];
  let portion: FileSystemEntry[];
  do {
    portion = await new Promise((resolve, reject) => reader.readEntries(resolve, reject));
    all.push(...portion.filter((entry) => !hidden(entry.name)));
  } while (portion.length);
  return all.sort((one, other) => one.name.localeCompare(other.name));
}

const fileOf = (entry: FileSystemFileEntry) =>
  new Promise<File>((resolve, reject) => entry.file(resolve, reject));

/** The same for a folder that was picked: the browser has read it already. */
export function pickedFolder(picked: readonly File[]): FoundFiles {
  const files = picked
    .map((file) => ({ file, parts: file.webkitRelativePath.split("/") }))
    .filter(({ parts }) => !parts.slice(1).some(hidden))
    .sort(
      (one, other) =>
        one.parts.length - other.parts.length || (one.parts.join() < other.parts.join() ? -1 : 1),
    )
    .map(({ file, parts }) => flat(file, parts.join("/")));
  const name = picked[0]?.webkitRelativePath.split("/")[0] ?? "";
  return { files, more: false, refused: files.length ? [] : [{ name, reason: "empty" }] };
}

const refuse = (found: FoundFiles, { name }: FileSystemEntry, reason: "empty" | "folder") =>
  found.refused.push({ name, reason });

const hidden = (name: string) => name.startsWith(".");

/** The message's files lie side by side: the path becomes part of the name, from its end if it is too long. */
function flat(file: File, path: string): File {
  const parts = path.split("/");
  const bytes = () => new TextEncoder().encode(parts.join("__")).length;
  while (parts.length > 1 && bytes() > NAME_BYTES) parts.shift();
  return new File([file], parts.join("__"), { type: file.type, lastModified: file.lastModified });
}
