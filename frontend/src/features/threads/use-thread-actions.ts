"use client";
import { useQueryClient, type InfiniteData, type QueryClient } from "@tanstack/react-query";
import { toast } from "@/ui/toast";
import { forgetDraft } from "@/lib/drafts";
import { forgetChoice } from "@/lib/run-settings";
import { useT } from "@/i18n";
import { threadApi, type FoundThread } from "@/lib/api";
import { ApiError, http } from "@/lib/http";
import { keys } from "@/lib/keys";
import { openThread, useThreadId } from "@/lib/route";
import { listKey, pinnedKey } from "./use-threads";

type Pages = InfiniteData<FoundThread[], number>;

/** What can be done with a thread of the list: shown at once, taken back if the server says no. */
export function useThreadActions() {
  const t = useT("threads");
  const client = useQueryClient();
  const current = useThreadId();

  const attempt = async (
    failure: "renameFailed" | "pinFailed" | "deleteFailed",
    show: () => void,
    work: () => Promise<unknown>,
  ) => {
    await client.cancelQueries({ queryKey: keys.threads });
    const before = [listKey, pinnedKey].map((key) => [key, client.getQueryData(key)] as const);
    show();
    try {
      await work();
    } catch (error) {
      for (const [key, data] of before) client.setQueryData(key, data);
      toast.error(t(failure), { description: (error as Error).message });
      throw error;
    } finally {
      void client.invalidateQueries({ queryKey: keys.threads });
    }
  };

  return {
    rename: (id: string, title: string) =>
      attempt(
        "renameFailed",
        () => changeAll(client, id, (one) => ({ ...one, values: { ...one.values, title } })),
        async () => {
          await http.post(threadApi(id, "/state"), { values: { title } });
          void client.invalidateQueries({ queryKey: keys.thread(id) });
        },
      ),
    pin: (id: string, pinned: boolean) =>
      attempt(
        "pinFailed",
        () => showPinned(client, id, pinned),
        () => http.patch(threadApi(id), { metadata: { pinned } }),
      ),
    remove: (id: string) =>
      attempt(
        "deleteFailed",
        () => {
          changeAll(client, id, () => null);
          // Away from it first: what it shows would be asked for again, and not be there.
          if (current === id) openThread(null);
        },
        async () => {
          await http.delete(threadApi(id)).catch(unlessGone);
          forgetDraft(id);
          forgetChoice(id);
          client.removeQueries({ queryKey: keys.thread(id) });
        },
      ),
  };
}

export type ThreadActions = ReturnType<typeof useThreadActions>;

/** Somebody else, or another tab, was faster. */
function unlessGone(error: unknown) {
  if (!(error instanceof ApiError) || error.status !== 404) throw error;
}

/** In all lists; null takes it out. */
function changeAll(client: QueryClient, id: string, change: (thread: FoundThread) => FoundThread | null) {
  const inOne = (threads: FoundThread[]) =>
    threads.flatMap((one) => (one.thread_id === id ? (change(one) ?? []) : [one]));
  client.setQueryData<FoundThread[]>(pinnedKey, (threads) => threads && inOne(threads));
  client.setQueryData<Pages>(listKey, (data) => data && { ...data, pages: data.pages.map(inOne) });
}

function showPinned(client: QueryClient, id: string, pinned: boolean) {
  changeAll(client, id, (one) => ({ ...one, metadata: { ...one.metadata, pinned } }));
  const known = client
    .getQueryData<Pages>(listKey)
    ?.pages.flat()
    .find((one) => one.thread_id === id);
  client.setQueryData<FoundThread[]>(pinnedKey, (threads) => {
    const others = (threads ?? []).filter((one) => one.thread_id !== id);
    return pinned && known ? [known, ...others] : others;
  });
}
