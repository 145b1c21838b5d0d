"use client";
import { useEffect, useEffectEvent, useRef } from "react";
import { onRestored, readDraft, writeDraft, type Draft } from "@/lib/drafts";

const DELAY = 300;

/** Keeps the draft while it is written, and tells when one came back. */
export function useDraftKeeper(
  conversation: string,
  isNew: boolean,
  draft: Draft,
  takeBack: (draft: Draft) => void,
) {
  const unsaved = useRef(false);
  const save = useEffectEvent(() => {
    if (unsaved.current) writeDraft(conversation, isNew, draft);
    unsaved.current = false;
  });
  const names = draft.files.map((file) => file.filename).join("\n");
  const first = useRef(true);
  useEffect(() => {
    if (first.current) {
      first.current = false;
      return;
    }
    unsaved.current = true;
    const timer = setTimeout(save, DELAY);
    return () => clearTimeout(timer);
  }, [draft.text, names]);

  const restored = useEffectEvent((where: string) => {
    if (where === conversation) takeBack(readDraft(conversation, isNew));
  });
  useEffect(() => {
    const hide = () => save();
    const deaf = onRestored((where) => restored(where));
    window.addEventListener("pagehide", hide);
    return () => {
      save();
      window.removeEventListener("pagehide", hide);
      deaf();
    };
  }, []);
}
