"use client";
import { lazy, type ComponentType, type LazyExoticComponent } from "react";
import { isUnreachable, request } from "./http";

/** A wait in ms that ends early when the network is back. */
function pause(ms: number) {
  return new Promise<void>((resolve) => {
    const go = () => {
      clearTimeout(timer);
      window.removeEventListener("online", go);
      resolve();
    };
    const timer = setTimeout(go, ms);
    window.addEventListener("online", go);
  });
}

const serverIsAway = () =>
  request("GET", "/health").then(
    () => false,
    (error: unknown) => isUnreachable(error),
  );

/**
 * A part of the page's code or texts. While the server cannot be reached it is asked for again and again, so that what
 * is offline waits for its part instead of failing. Throws where the server answers and has no such part (any more).
 */
export async function loadLate<Part>(load: () => Promise<Part>): Promise<Part> {
  for (let wait = 1000; ; wait = Math.min(2 * wait, 15_000)) {
    try {
      return await load();
    } catch {
      if (!(await serverIsAway())) return load();
      await pause(wait);
    }
  }
}

/** A component whose code is fetched when it is shown. */
export const late = <Props>(
  load: () => Promise<{ default: ComponentType<Props> }>,
): LazyExoticComponent<ComponentType<Props>> => lazy(() => loadLate(load));

/** Fetches a part before it is needed. What does not come now is fetched when it is shown. */
export const preload = (load: () => Promise<unknown>) => void load().catch(() => undefined);

/** A component that the page can begin without: its code is fetched when the browser is idle, or when it is shown. */
export function afterPage<Props>(
  load: () => Promise<{ default: ComponentType<Props> }>,
): LazyExoticComponent<ComponentType<Props>> {
  if (typeof requestIdleCallback === "function") requestIdleCallback(() => preload(load));
  return late(load);
}
