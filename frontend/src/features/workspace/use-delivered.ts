import { useEffect, useEffectEvent, useRef } from "react";
import { useSession } from "@/features/chat";

/** Calls `show` when a run that was watched has ended with a single delivered file, which may arrive after the end. */
export function useDelivered(show: (path: string) => void) {
  const { running, turns } = useSession();
  const last = turns.at(-1);
  const id = last?.id ?? null;
  const file = last?.state === "done" && last.presented.length === 1 ? last.presented[0]! : null;
  const watched = useRef<string | null>(null);
  const onFile = useEffectEvent(show);
  useEffect(() => {
    if (running) watched.current = id;
    else if (file !== null && watched.current === id) {
      watched.current = null;
      onFile(file);
    }
  }, [running, id, file]);
}
