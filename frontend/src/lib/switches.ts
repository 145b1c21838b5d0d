"use client";
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useEffect } from "react";
import { threadApi, type FoundThread } from "./api";
import { http } from "./http";
import { keys } from "./keys";
import { choose, useRunChoice } from "./run-settings";

/** Things that are switched off in a chat, and whether it is temporary, by its thread's metadata. */
interface Switches {
  off: readonly string[];
  temporary: boolean;
}

const NONE: readonly string[] = [];

/**
 * The switches of a chat: stored with its thread; those of a new chat (`isNew`) stay on the device until its
 * first message takes them along. `known` is false until the thread's have been loaded.
 */
export function useSwitches(threadId: string, isNew = false) {
  const queries = useQueryClient();
  const queryKey = keys.switches(threadId);
  const { off: chosen = NONE, temporary: asked = false } = useRunChoice(threadId).settings;
  const { data } = useQuery({ queryKey, queryFn: () => switchesOf(threadId), enabled: !isNew });
  const { off, temporary } = data ?? { off: chosen, temporary: asked };
  // The rest of the page reads them without a question to the server.
  const stale = data && String(data.off) !== String(chosen);
  useEffect(() => {
    if (stale) choose(threadId, { off: data.off });
  }, [threadId, stale, data]);
  return {
    known: isNew || data !== undefined,
    off,
    temporary,
    isOn: (name: string) => !off.includes(name) && !(temporary && name === "memory"),
    /** Throws ApiError. */
    set: async (name: string, on: boolean) => {
      const next = [...off.filter((one) => one !== name), ...(on ? [] : [name])];
      if (isNew) return choose(threadId, { off: next });
      queries.setQueryData<Switches>(queryKey, { off: next, temporary });
      try {
        await http.patch(threadApi(threadId), { metadata: { switched_off: next, memory_paused: false } });
      } finally {
        void queries.invalidateQueries({ queryKey });
      }
    },
    /** Only before the first message. */
    setTemporary: (next: boolean) => choose(threadId, { temporary: next }),
  };
}

async function switchesOf(threadId: string): Promise<Switches> {
  const body = { ids: [threadId], select: ["metadata"], limit: 1 };
  const [found] = await http.post<FoundThread[]>("/api/threads/search", body);
  const { switched_off: off, memory_paused: paused, temporary } = found?.metadata ?? {};
  const names = Array.isArray(off) ? off.filter((name) => typeof name === "string") : [];
  if (paused === true && !names.includes("memory")) names.push("memory");
  return { off: names, temporary: temporary === true };
}
