"use client";
import { useSyncExternalStore } from "react";

/** Whether there is room for two columns beside the sidebar. */
export const useWideScreen = () => useMedia("(min-width: 64rem), print");

/** Whether a media query holds; yes while the page is made without a browser. */
export function useMedia(query: string): boolean {
  return useSyncExternalStore(
    (changed) => {
      const media = window.matchMedia(query);
      media.addEventListener("change", changed);
      return () => media.removeEventListener("change", changed);
    },
    () => window.matchMedia(query).matches,
    () => true,
  );
}
