import { useState } from "react";
import type { Session } from "@/features/chat";

/** The id of the newest turn that was answered while this page looked on. */
export function useWatched({ running, turns }: Pick<Session, "running" | "turns">): string | null {
  const [watched, setWatched] = useState<string | null>(null);
  const last = turns.at(-1);
  if (running && last && watched !== last.id) setWatched(last.id);
  return watched;
}
