"use client";
import { lazy, type ComponentType, type LazyExoticComponent } from "react";

/** A component that the page can begin without: its code is fetched when the browser is idle, or when it is shown. */
export function afterPage<Props>(
  load: () => Promise<{ default: ComponentType<Props> }>,
): LazyExoticComponent<ComponentType<Props>> {
  if (typeof requestIdleCallback === "function")
    requestIdleCallback(() => void load().catch(() => undefined));
  return lazy(load);
}
