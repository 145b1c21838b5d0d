"use client";
import { useQueryClient, type QueryClient } from "@tanstack/react-query";
import { useEffect } from "react";
import { keys } from "@/lib/keys";

interface Notice {
  type: string;
  thread_id?: string;
  run_id?: string;
  status?: string;
}

const AGAIN = 5000;

/**
 * One stream of notices for the page: lists that changed on the server are reloaded. Notices are not kept, so
 * after each (re)connection everything that can change counts as stale.
 */
export function useLiveLists() {
  const client = useQueryClient();
  useEffect(() => {
    let source: EventSource | null = null;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const connect = () => {
      source = new EventSource("/api/events");
      source.onopen = () => refreshAll(client);
      source.onmessage = (event) => apply(client, JSON.parse(event.data as string) as Notice);
      source.onerror = () => {
        if (source?.readyState !== EventSource.CLOSED) return; // it connects again by itself
        timer = setTimeout(connect, AGAIN);
      };
    };
    connect();
    return () => {
      clearTimeout(timer);
      source?.close();
    };
  }, [client]);
}

function apply(client: QueryClient, notice: Notice) {
  if (notice.type === "refresh") return refreshAll(client);
  reloadLists(client);
  if (notice.thread_id) void client.invalidateQueries({ queryKey: keys.thread(notice.thread_id) });
}

function refreshAll(client: QueryClient) {
  reloadLists(client);
  void client.invalidateQueries({ queryKey: ["thread"] });
}

/** Load the lists again. A first load that is under way may have read them before they changed, and would not be begun again. */
function reloadLists(client: QueryClient) {
  const lists = { queryKey: keys.threads };
  void client
    .cancelQueries({ ...lists, predicate: ({ state }) => state.data === undefined })
    .then(() => client.invalidateQueries(lists));
}
