"use client";
import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import type { FoundThread, Hit } from "@/lib/api";
import { http } from "@/lib/http";
import { keys } from "@/lib/keys";
import { useHidden } from "./deletions";
import { isArchived, isDraft, toItem } from "./group";

const PAGE = 40;
const MAX_PINNED = 200;
const FIELDS = ["thread_id", "status", "created_at", "updated_at", "metadata", "values.title"];

export const listKey = [...keys.threads, "list"];
export const archivedKey = [...keys.threads, "archived"];
export const pinnedKey = [...keys.threads, "pinned"];

const find = (body: object, signal?: AbortSignal) =>
  http.post<FoundThread[]>("/api/threads/search", { select: FIELDS, ...body }, { signal });

/** All threads, newest first, page by page; pinned ones come on their own, so that none is lost on a later page. */
export function useThreads(archived = false) {
  const hidden = useHidden();
  const pinned = useQuery({
    queryKey: pinnedKey,
    queryFn: ({ signal }) => find({ metadata: { pinned: true }, limit: MAX_PINNED }, signal),
  });
  const list = useInfiniteQuery({
    queryKey: archived ? archivedKey : listKey,
    queryFn: ({ pageParam, signal }) =>
      find({ limit: PAGE, offset: pageParam, ...(archived && { metadata: { archived } }) }, signal),
    initialPageParam: 0,
    getNextPageParam: (page, pages) => (page.length < PAGE ? undefined : pages.length * PAGE),
  });
  const isHere = (thread: FoundThread) =>
    !hidden.has(thread.thread_id ?? "") && isArchived(thread) === archived;
  const apart = !archived && (pinned.data !== undefined || !pinned.isError);
  // A thread that moved up while pages were loaded stands on two of them.
  const seen = new Set<string>();
  const others = (list.data?.pages.flat() ?? []).filter((thread) => {
    const known = seen.has(thread.thread_id ?? "");
    seen.add(thread.thread_id ?? "");
    return !known && isHere(thread) && !(apart && thread.metadata?.pinned === true) && !isDraft(thread);
  });
  return {
    pinned: archived ? [] : (pinned.data ?? []).filter(isHere).map(toItem),
    others: others.map(toItem),
    list,
  };
}

interface SearchResult {
  titles: Hit[];
  messages: Hit[];
}

/** Titles and messages with all the words; the server finds beginnings of words, too. */
export function useThreadSearch(text: string, limit = 20) {
  const hidden = useHidden();
  return useQuery({
    queryKey: [...keys.threads, "search", text, limit],
    queryFn: async ({ signal }): Promise<SearchResult> => {
      const found = await http.get<{ data: Hit[] }>("/api/search/messages", {
        query: { q: text, limit },
        signal,
      });
      const isTitle = (hit: Hit) => hit.type === "title";
      return { titles: found.data.filter(isTitle), messages: found.data.filter((hit) => !isTitle(hit)) };
    },
    select: ({ titles, messages }) => {
      const isHere = (hit: Hit) => !hidden.has(hit.thread_id);
      return { titles: titles.filter(isHere), messages: messages.filter(isHere) };
    },
    enabled: text !== "",
    placeholderData: (before) => before,
  });
}
