import { queryOptions } from "@tanstack/react-query";
import { threadApi } from "@/lib/api";
import type { components } from "@/lib/api-types";
import { fileUrl, nameOf } from "@/lib/files";
import { http, request } from "@/lib/http";
import { keys } from "@/lib/keys";
import { sameUrl, type Source } from "./citations";

type Page = components["schemas"]["ReadPage"];

/** Pages of the web that the thread keeps, as its agents read them. */
export const pagesQuery = (threadId: string) =>
  queryOptions({
    queryKey: keys.pages(threadId),
    queryFn: ({ signal }) => http.get<Page[]>(threadApi(threadId, "/pages"), { signal }),
    staleTime: 30_000,
  });

/** Bytes of a page that are searched for what is cited. */
const PART = 400_000;

export const textQuery = (threadId: string, path: string) =>
  queryOptions({
    queryKey: ["page", threadId, path], // what was read never changes
    queryFn: async ({ signal }) => {
      const headers = { Range: `bytes=0-${PART - 1}` };
      const answer = await request("GET", fileUrl(threadId, path), { signal, headers });
      return new TextDecoder().decode(await answer.arrayBuffer());
    },
    staleTime: Infinity,
    gcTime: 60_000,
    retry: false,
  });

/** The page of a source; null: it was not read. */
export function keptPage(source: Source, pages: readonly Page[]): Page | null {
  const name = keptName(source.url);
  return (
    pages.find((page) => page.path === source.kept) ??
    pages.find((page) => page.url && sameUrl(page.url) === sameUrl(source.url)) ??
    pages.find((page) => !page.url && nameOf(page.path).replace(/-[0-9a-f]{10}\.\w+$/, "") === name) ??
    null
  );
}

/** The harness's file name for a page, without the part that distinguishes versions. */
const keptName = (url: string) =>
  url
    .split("?")[0]!
    .replace(/^https?:\/\/(?:www\.)?/, "")
    .replace(/[^A-Za-z0-9.]+/g, "-")
    .slice(0, 60)
    .replace(/^[-.]+|[-.]+$/g, "");

/** Has the server load a picture into the thread; its path. */
export async function loadPicture(threadId: string, url: string): Promise<string> {
  const { path } = await http.post<{ path: string }>(threadApi(threadId, "/pages/pictures"), { url });
  return path;
}
