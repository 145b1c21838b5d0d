"use client";
import { useEffect, useEffectEvent } from "react";

const OPEN = "deerflow:inbox";

/** Opens the list of all that waits, from any part of the page. */
export const openInbox = () => window.dispatchEvent(new Event(OPEN));

export function useInboxOpened(handler: () => void) {
  const handle = useEffectEvent(handler);
  useEffect(() => {
    const listen = () => handle();
    window.addEventListener(OPEN, listen);
    return () => window.removeEventListener(OPEN, listen);
  }, []);
}
