"use client";
import { useState } from "react";

/** Texts that were left unsaved, since something else was opened: there again when theirs is. Gone with the window. */
const left = new Map<string, string>();

/**
 * A text that is being written. It stays when what is saved changes meanwhile, and when its part of the page is left.
 * @param place of which there is one in the whole page
 * @returns the text, what changes it, and what forgets the change
 */
export function useTextDraft(place: string, saved: string) {
  const [draft, setDraft] = useState(() => left.get(place) ?? null);
  const write = (text: string) => {
    left.set(place, text);
    setDraft(text);
  };
  const forget = () => {
    left.delete(place);
    setDraft(null);
  };
  return [draft ?? saved, write, forget] as const;
}
