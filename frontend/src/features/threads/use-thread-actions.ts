"use client";
import { notifyManager, useQueryClient, type InfiniteData, type QueryClient } from "@tanstack/react-query";
import { toast } from "@/ui/toast";
import { forgetDraft } from "@/lib/drafts";
import { forgetChoice } from "@/lib/run-settings";
import { useT } from "@/i18n";
import { threadApi, type FoundThread } from "@/lib/api";
import { http } from "@/lib/http";
import { keys } from "@/lib/keys";
import { openThread, useThreadId } from "@/lib/route";
import { deleteHidden, hide, unhide } from "./deletions";
import { archivedKey, listKey, pinnedKey } from "./use-threads";

type Pages = InfiniteData<FoundThread[], number>;

/** Actions for a thread of the list: shown at once, undone if the server refuses. */
export function useThreadActions() {
  const t = useT("threads");
  const client = useQueryClient();
  const current = useThreadId();

  const attempt = async (
    failure: "renameFailed" | "pinFailed" | "archiveFailed",
    show: () => void,
    work: () => Promise<unknown>,
  ) => {
    await client.cancelQueries({ queryKey: keys.threads });
    const before = [listKey, pinnedKey, archivedKey].map((key) => [key, client.getQueryData(key)] as const);
    // At once: a row that is in no list for a moment would lose the focus.
    notifyManager.batch(show);
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

  const archive = async (ids: readonly string[], archived: boolean, isUndo = false) => {
    await attempt(
      "archiveFailed",
      () => ids.forEach((id) => changeAll(client, id, (one) => withNote(one, { archived }))),
      () => Promise.all(ids.map((id) => http.patch(threadApi(id), { metadata: { archived } }))),
    );
    if (isUndo) return;
    toast.success(t(archived ? "archived" : "unarchived", { count: ids.length }), {
      action: { label: t("undo"), run: () => void archive(ids, !archived, true).catch(() => {}) },
    });
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
    archive,
    /** Out of sight at once; gone when there is no more undoing it. */
    remove(ids: readonly string[]) {
      const open = current !== null && ids.includes(current) ? current : null;
      hide(ids);
      // Away from it: what it shows would be asked for again, and not be there.
      if (open) openThread(null);
      const commit = async () => {
        try {
          await deleteHidden(ids);
          for (const id of ids) {
            forgetDraft(id);
            forgetChoice(id);
            client.removeQueries({ queryKey: keys.thread(id) });
          }
        } catch (error) {
          toast.error(t("deleteFailed", { count: ids.length }), { description: (error as Error).message });
        }
        await client.invalidateQueries({ queryKey: keys.threads });
        unhide(ids);
      };
      toast.success(t("deleted", { count: ids.length }), {
        action: {
          label: t("undo"),
          run: () => {
            unhide(ids);
            if (open) openThread(open);
          },
        },
        onGone: () => void commit(),
      });
    },
  };
}

export type ThreadActions = ReturnType<typeof useThreadActions>;

const withNote = (thread: FoundThread, note: object) => ({
  ...thread,
  metadata: { ...thread.metadata, ...note },
});

/** In all lists. */
function changeAll(client: QueryClient, id: string, change: (thread: FoundThread) => FoundThread) {
  const inOne = (threads: FoundThread[]) => threads.map((one) => (one.thread_id === id ? change(one) : one));
  client.setQueryData<FoundThread[]>(pinnedKey, (threads) => threads && inOne(threads));
  for (const key of [listKey, archivedKey])
    client.setQueryData<Pages>(key, (data) => data && { ...data, pages: data.pages.map(inOne) });
}

function showPinned(client: QueryClient, id: string, pinned: boolean) {
  changeAll(client, id, (one) => withNote(one, { pinned }));
  const known = client
    .getQueryData<Pages>(listKey)
    ?.pages.flat()
    .find((one) => one.thread_id === id);
  client.setQueryData<FoundThread[]>(pinnedKey, (threads) => {
    const others = (threads ?? []).filter((one) => one.thread_id !== id);
    return pinned && known ? [known, ...others] : others;
  });
}
