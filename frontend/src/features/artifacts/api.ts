"use client";
import { queryOptions, useInfiniteQuery } from "@tanstack/react-query";
import { threadApi } from "@/lib/api";
import type { components } from "@/lib/api-types";
import { fileUrl } from "@/lib/files";
import { http, request } from "@/lib/http";
import { keys } from "@/lib/keys";

type Schemas = components["schemas"];
/** A file of a list, whether the agent delivered it or the person sent it. */
export type ListedFile = Pick<Schemas["Artifact"], "path" | "filename" | "size" | "modified" | "mime_type">;
export type RunChanges = Schemas["RunChanges"];

/** Facts of a file that are known without reading it. */
export interface Facts {
  size: number;
  mime: string;
  etag: string;
  modified: string | null;
}

/** A file as it was at a moment: `etag` is part of what it is. */
export interface FileAt extends Facts {
  threadId: string;
  path: string;
  /** null: as it is now. */
  version: number | null;
}

export const zipUrl = (threadId: string) => threadApi(threadId, "/artifacts.zip");

export const deliveredQuery = (threadId: string) =>
  queryOptions({
    queryKey: keys.artifacts(threadId),
    queryFn: ({ signal }) => http.get<Schemas["ArtifactList"]>(threadApi(threadId, "/artifacts"), { signal }),
  });

export const uploadsQuery = (threadId: string) =>
  queryOptions({
    queryKey: [...keys.uploads(threadId), "listed"],
    queryFn: async ({ signal }): Promise<ListedFile[]> => {
      const { files } = await http.get<Schemas["UploadList"]>(threadApi(threadId, "/uploads/list"), {
        signal,
      });
      return files.map(({ path, filename, size, modified }) => ({
        path,
        filename,
        size,
        modified: new Date(modified * 1000).toISOString(),
        mime_type: "",
      }));
    },
  });

export const changesQuery = (threadId: string) =>
  queryOptions({
    queryKey: keys.changes(threadId),
    queryFn: ({ signal }) => http.get<RunChanges[]>(threadApi(threadId, "/changes"), { signal }),
  });

export const versionsQuery = (threadId: string, path: string) =>
  queryOptions({
    queryKey: keys.versions(threadId, path),
    queryFn: ({ signal }) =>
      http.get<Schemas["ArtifactVersion"][]>(threadApi(threadId, "/artifacts/versions"), {
        query: { path },
        signal,
      }),
  });

export const factsQuery = (threadId: string, path: string, version: number | null) =>
  queryOptions({
    queryKey: [...keys.file(threadId, path), version ?? "now"],
    queryFn: async ({ signal }) =>
      factsOf(await request("HEAD", fileUrl(threadId, path, { version }), { signal })),
    // Files change during a run, and the server sends no notice of it.
    refetchInterval: version === null ? 8000 : false,
    staleTime: 0,
  });

function factsOf(answer: Response): Facts {
  const modified = answer.headers.get("last-modified");
  return {
    size: Number(answer.headers.get("content-length") ?? 0),
    mime: answer.headers.get("content-type") ?? "",
    etag: answer.headers.get("etag") ?? "",
    modified: modified && new Date(modified).toISOString(),
  };
}

/** Bytes of a text that are loaded at once. */
const PART = 1 << 20;
export const MAX_EDIT = 5 << 20;

interface Part {
  bytes: Uint8Array;
  end: number;
  total: number;
  etag: string;
  /** The encoding, as the server knows it. */
  charset: string;
}

async function readPart(file: Where, start: number, size: number, signal?: AbortSignal): Promise<Part> {
  const url = fileUrl(file.threadId, file.path, { version: file.version });
  let answer: Response;
  try {
    // Parts are never compressed, so their ETag is one that an edit can be made with.
    answer = await request("GET", url, { signal, headers: { Range: `bytes=${start}-${start + size - 1}` } });
  } catch (error) {
    if (start === 0 && (error as { status?: number }).status === 416) return emptyPart(file, signal);
    throw error;
  }
  const bytes = new Uint8Array(await answer.arrayBuffer());
  const total = Number(/\/(\d+)$/.exec(answer.headers.get("content-range") ?? "")?.[1] ?? bytes.length);
  return {
    bytes,
    end: start + bytes.length,
    total,
    etag: answer.headers.get("etag") ?? "",
    charset: /charset=([\w-]+)/.exec(answer.headers.get("content-type") ?? "")?.[1] ?? "utf-8",
  };
}

type Where = Pick<FileAt, "threadId" | "path" | "version">;

/** Nothing has no first part. */
async function emptyPart(file: Where, signal?: AbortSignal): Promise<Part> {
  const answer = await request("HEAD", fileUrl(file.threadId, file.path, { version: file.version }), {
    signal,
  });
  const etag = answer.headers.get("etag") ?? "";
  return { bytes: new Uint8Array(), end: 0, total: 0, etag, charset: "utf-8" };
}

/** A whole text and the tag to edit it with. */
export async function readText(file: Where): Promise<{ text: string; etag: string }> {
  const part = await readPart(file, 0, MAX_EDIT + 1);
  return { text: decoded([part.bytes], part.charset), etag: part.etag };
}

/** `charset` is the server's word, which one mark of the bytes outweighs; browsers do not know every encoding. */
export function decoded(parts: Uint8Array[], charset = "utf-8"): string {
  const [a, b] = parts[0] ?? [];
  const decoder = decoderOf(
    a === 0xff && b === 0xfe ? "utf-16le" : a === 0xfe && b === 0xff ? "utf-16be" : charset,
  );
  return parts.map((bytes) => decoder.decode(bytes, { stream: true })).join("");
}

function decoderOf(charset: string): TextDecoder {
  try {
    return new TextDecoder(charset);
  } catch {
    return new TextDecoder();
  }
}

/** The text of a file, part by part. */
export function useText(file: FileAt) {
  const query = useInfiniteQuery({
    // Not below the thread's key: a notice must not exchange the text under its reader.
    queryKey: ["text", file.threadId, file.path, file.version ?? "now", file.etag],
    queryFn: ({ pageParam, signal }) => readPart(file, pageParam, PART, signal),
    initialPageParam: 0,
    getNextPageParam: (last) => (last.end < last.total ? last.end : undefined),
    staleTime: Infinity,
    gcTime: 60_000,
  });
  const pages = query.data?.pages;
  const last = pages?.at(-1);
  return {
    text:
      pages &&
      decoded(
        pages.map((page) => page.bytes),
        pages[0]?.charset,
      ),
    etag: pages?.[0]?.etag ?? "",
    read: last?.end ?? 0,
    total: last?.total ?? file.size,
    isPartial: query.hasNextPage,
    more: () => void query.fetchNextPage(),
    isLoadingMore: query.isFetchingNextPage,
    error: query.error,
    retry: () => void query.refetch(),
  };
}

/** An address at which a site of the thread runs with its neighbours, without any of our rights. */
export const previewUrl = async (threadId: string, path: string, allowNetwork: boolean) => {
  const body = { path, allow_network: allowNetwork };
  return (await http.post<Schemas["PreviewAnswer"]>(threadApi(threadId, "/preview"), body)).url;
};
