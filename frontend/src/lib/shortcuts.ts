"use client";
import { useEffect, useEffectEvent } from "react";

/** All shortcuts of the product, for the help dialog and the palette; the texts are in i18n `common.shortcut`. */
export const SHORTCUTS = {
  palette: "mod+k",
  find: "mod+f",
  newChat: "mod+shift+o",
  toggleSidebar: "mod+b",
  settings: "mod+,",
  help: "mod+/",
  files: "mod+shift+e",
  copyAnswer: "mod+shift+c",
  focusComposer: "shift+escape",
  stop: "escape",
} as const;
export type ShortcutId = keyof typeof SHORTCUTS;

const isApple = () => typeof navigator !== "undefined" && /Mac|iPhone|iPad/.test(navigator.platform);

/** "⌘⇧O" or "Ctrl Shift O". */
export function shortcutLabel(combo: string, apple = isApple()): string {
  const names: Record<string, [string, string]> = {
    mod: ["⌘", "Ctrl"],
    shift: ["⇧", "Shift"],
    alt: ["⌥", "Alt"],
    escape: ["Esc", "Esc"],
    enter: ["↵", "Enter"],
  };
  const parts = combo.split("+").map((part) => names[part]?.[apple ? 0 : 1] ?? part.toUpperCase());
  return parts.join(apple ? "" : " ");
}

export function matches(combo: string, event: KeyboardEvent, apple = isApple()): boolean {
  const parts = combo.split("+");
  const mod = apple ? event.metaKey : event.ctrlKey;
  return (
    event.key.toLowerCase() === parts.at(-1) &&
    mod === parts.includes("mod") &&
    event.shiftKey === parts.includes("shift") &&
    event.altKey === parts.includes("alt") &&
    !(apple ? event.ctrlKey : event.metaKey)
  );
}

export interface ShortcutOptions {
  enabled?: boolean;
  /** Also while something is typed; always so for combinations with ⌘ or Ctrl. */
  inInputs?: boolean;
  /** Elsewhere the browser does what it does. */
  when?: (target: EventTarget | null) => boolean;
}

/** Calls `handler` for the keys, unless something nearer (a dialog, a menu) has taken them already. */
export function useShortcut(
  combo: string,
  handler: (event: KeyboardEvent) => void,
  options: ShortcutOptions = {},
) {
  const { enabled = true, inInputs = combo.includes("mod+"), when = () => true } = options;
  const handle = useEffectEvent(handler);
  const applies = useEffectEvent(when);
  useEffect(() => {
    if (!enabled) return;
    const onKey = (event: KeyboardEvent) => {
      if (event.defaultPrevented || event.isComposing || !matches(combo, event)) return;
      if ((!inInputs && isTyping(event.target)) || !applies(event.target)) return;
      event.preventDefault();
      handle(event);
    };
    window.addEventListener("keydown", onKey);
    return () => window.removeEventListener("keydown", onKey);
  }, [combo, enabled, inInputs]);
}

const isTyping = (target: EventTarget | null) =>
  target instanceof HTMLElement &&
  (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName));
