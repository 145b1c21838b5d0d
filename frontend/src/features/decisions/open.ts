"use client";
import { useSyncExternalStore } from "react";

let isOpen = false;
const listeners = new Set<() => void>();

/** Opens or closes the list of all that waits, from any part of the page; also before the list is loaded. */
export function setInbox(open: boolean) {
  isOpen = open;
  listeners.forEach((listener) => listener());
}

const subscribe = (listener: () => void) => {
  listeners.add(listener);
  return () => void listeners.delete(listener);
};

export const useInbox = () =>
  useSyncExternalStore(
    subscribe,
    () => isOpen,
    () => false,
  );
