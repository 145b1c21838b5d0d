"use client";
import { useEffect, useEffectEvent, useSyncExternalStore } from "react";

let isShown = false;
const listeners = new Set<() => void>();
const wishes = new Set<() => void>();

/** Shows the archived chats in the sidebar, or the others again. */
export function setArchivedView(shown: boolean) {
  isShown = shown;
  listeners.forEach((listener) => listener());
}

const subscribe = (listener: () => void) => {
  listeners.add(listener);
  return () => void listeners.delete(listener);
};

export const useArchivedView = () =>
  useSyncExternalStore(
    subscribe,
    () => isShown,
    () => false,
  );

/** Shows them from elsewhere: the sidebar opens for it. */
export function openArchivedView() {
  setArchivedView(true);
  wishes.forEach((wish) => wish());
}

export function useArchivedWish(handler: () => void) {
  const handle = useEffectEvent(handler);
  useEffect(() => {
    const wish = () => handle();
    wishes.add(wish);
    return () => void wishes.delete(wish);
  }, []);
}
