"use client";
import { useSyncExternalStore } from "react";

/** True if there is room for two columns beside the sidebar. */
export const useWideScreen = () => useMedia("(min-width: 64rem), print");

/** True if a media query matches; true while the page is rendered without a browser. */
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
