/** Files of a thread, as the agent names them and as the browser loads them. */
import { threadApi } from "./api";

export const ROOT = "/mnt/user-data/";

interface FileUrlOptions {
  /** null: as it is now. */
  version?: number | null;
  download?: boolean;
  /** Part of the address, so that a changed picture is loaded again. */
  etag?: string;
}

/** The address of a file of the thread; `path` begins with /mnt/user-data/. */
export function fileUrl(
  threadId: string,
  path: string,
  { version, download, etag }: FileUrlOptions = {},
): string {
  const query = new URLSearchParams();
  if (version) query.set("version", String(version));
  if (download) query.set("download", "true");
  if (etag) query.set("of", etag.replaceAll('"', ""));
  const place = path.replace(/^\/+/, "").split("/").map(encodeURIComponent).join("/");
  return threadApi(threadId, `/artifacts/${place}${query.size ? `?${query}` : ""}`);
}

export const nameOf = (path: string) => path.replace(/\/+$/, "").split("/").at(-1) || path;

/** The path without the part that all paths share. */
export const shortPath = (path: string) => path.replace(/^\/mnt\/user-data\/(workspace\/)?/, "") || path;

export const isPicture = (name: string) => /\.(png|jpe?g|gif|webp|avif|bmp)$/i.test(name);

/** A path in the thread's directories; null for anything else. Understands `sandbox:` links, and links with `%20`. */
export function threadPathOf(text: string): string | null {
  const path = text.replace(SCHEMES, "");
  if (!path.startsWith(ROOT) || path.length === ROOT.length) return null;
  const plain = decoded(path.split(/[?#]/)[0]!);
  return plain.split("/").includes("..") ? null : plain;
}

/** Target of a link in the file at `path`: another file of the thread, or null. */
export function resolvePath(path: string, link: string): string | null {
  const target = link.replace(SCHEMES, "").split(/[?#]/)[0]!;
  if (!target || /^([a-z][a-z0-9+.-]*:|\/\/|#)/i.test(target)) return null;
  const parts = target.startsWith("/") ? [] : path.split("/").slice(0, -1);
  for (const part of decoded(target).split("/")) {
    if (part === "..") parts.pop();
    else if (part !== "." && (part !== "" || parts.length === 0)) parts.push(part);
  }
  const full = parts.join("/");
  const absolute = full.startsWith("/") ? full : `/${full}`;
  return absolute.startsWith(ROOT) && absolute.length > ROOT.length ? absolute : null;
}

/** A picture that may be shown: of the thread or in the text itself. Remote ones would tell others who reads what. */
export function pictureUrl(threadId: string | null, source: string): string | null {
  if (/^data:image\/(png|jpe?g|gif|webp|avif|bmp);base64,/i.test(source)) return source;
  const path = threadPathOf(source);
  return path && threadId ? fileUrl(threadId, path) : null;
}

/** As models write links to files that lie beside them. */
const SCHEMES = /^(sandbox:|file:\/\/)/;

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
