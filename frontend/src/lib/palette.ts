"use client";
import { useEffect, useEffectEvent } from "react";

/** Event by which other parts of the page open the palette and the list of shortcuts without holding them. */
const OPEN = "deerflow:palette";
type What = "palette" | "help";

const tell = (what: What) => window.dispatchEvent(new CustomEvent<What>(OPEN, { detail: what }));
export const openPalette = () => tell("palette");
export const openShortcutHelp = () => tell("help");

export function useOpened(handler: (what: What) => void) {
  const handle = useEffectEvent(handler);
  useEffect(() => {
    const listen = (event: Event) => handle((event as CustomEvent<What>).detail);
    window.addEventListener(OPEN, listen);
    return () => window.removeEventListener(OPEN, listen);
  }, []);
}
