/** The result texts of the file and web tools, read back into lists. */
import { isWeb } from "@/lib/web";

export interface Match {
  path: string;
  line: number | null;
  text: string;
}

/** Of `ls`, `glob` and `grep`; notes are what the tool says besides. */
export function parseList(name: string, result: string): { entries: Match[]; notes: string[] } {
  const entries: Match[] = [];
  const notes: string[] = [];
  for (const line of result.split("\n")) {
    const entry = line && (name === "grep" ? grepLine(line) : pathLine(line));
    if (entry) entries.push(entry);
    else if (line && line !== "(empty)" && !/^Found \d+/.test(line)) notes.push(line);
  }
  return { entries, notes };
}

function grepLine(line: string): Match | null {
  const found = /^(.+?):(\d+): ?(.*)$/.exec(line);
  return found ? { path: found[1]!, line: Number(found[2]), text: found[3]! } : null;
}

function pathLine(line: string): Match | null {
  const found = /^\d+\. (.+)$|^(\/.*)$/.exec(line);
  return found ? { path: (found[1] ?? found[2])!, line: null, text: "" } : null;
}

export interface Hit {
  title: string;
  url: string;
  text: string;
}

export interface PictureHit {
  title: string;
  /** Of the picture, then of a smaller one. */
  urls: string[];
  /** Its address. */
  page: string;
  width: number | null;
  height: number | null;
}

/** Results of `image_search`. */
export function parsePictures(result: string): PictureHit[] {
  return listIn(json(result)).flatMap((one): PictureHit[] => {
    const record = (one ?? {}) as Record<string, unknown>;
    const web = (name: string) => (isWeb(String(record[name])) ? [String(record[name])] : []);
    const side = (name: string) => (typeof record[name] === "number" ? record[name] : null);
    const urls = [...web("image_url"), ...web("thumbnail_url")];
    if (!urls.length) return [];
    const [page = ""] = web("source_url");
    const title = typeof record.title === "string" ? record.title : "";
    return [{ title, urls, page, width: side("width"), height: side("height") }];
  });
}

/** Search results: JSON lists of almost any shape, else every address in the text. */
export function parseHits(result: string): Hit[] {
  const data = json(result);
  const list = Array.isArray(data) ? data : listIn(data);
  const hits = list.flatMap((one): Hit[] => {
    if (typeof one !== "object" || one === null) return [];
    const record = one as Record<string, unknown>;
    const text = (...names: string[]) =>
      names.map((name) => record[name]).find((v) => typeof v === "string" && v) ?? "";
    const url = String(text("url", "link", "href", "source_url", "image_url"));
    return isWeb(url)
      ? [
          {
            url,
            title: String(text("title", "name") || url),
            text: String(text("snippet", "content", "description")),
          },
        ]
      : [];
  });
  if (hits.length || data !== undefined) return hits;
  const addresses = new Set(
    [...result.matchAll(/https?:\/\/[^\s)\]>"'<]+/g)].map(([url]) => url.replace(/[.,;:]+$/, "")),
  );
  return [...addresses].slice(0, 30).map((url) => ({ url, title: url, text: "" }));
}

const listIn = (data: unknown): unknown[] =>
  typeof data === "object" && data !== null
    ? ((Object.values(data).find(Array.isArray) as unknown[] | undefined) ?? [])
    : [];

function json(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
