"use client";
import { useSyncExternalStore } from "react";

/** Memory of this device: JSON in localStorage under `deerflow.<key>`, the same in all its tabs. */
const listeners = new Map<string, Set<() => void>>();
const parsed = new Map<string, { text: string | null; value: unknown }>();
const nameOf = (key: string) => `deerflow.${key}`;

export function readStored<T>(key: string, initial: T): T {
  let text: string | null = null;
  try {
    text = localStorage.getItem(nameOf(key));
  } catch {
    return initial; // storage is switched off
  }
  const known = parsed.get(key);
  if (known && known.text === text) return (known.value === undefined ? initial : known.value) as T;
  let value: unknown;
  try {
    value = text === null ? undefined : JSON.parse(text);
  } catch {
    value = undefined;
  }
  parsed.set(key, { text, value });
  return (value === undefined ? initial : value) as T;
}

/** `undefined` forgets it. */
export function writeStored<T>(key: string, value: T | undefined) {
  if (signedOut && key.startsWith(`${owner}.`)) return;
  try {
    if (value === undefined) localStorage.removeItem(nameOf(key));
    else localStorage.setItem(nameOf(key), JSON.stringify(value));
  } catch {
    // full or switched off: it is then not remembered
  }
  listeners.get(key)?.forEach((f) => f());
}

let owner = "";
let signedOut = false;

/** Bind values under `own` keys to this account from now on. The first call counts until the page is reloaded. */
export function setOwner(accountId: string) {
  owner ||= accountId;
}

/** The key of what must not be seen by others who sign in on this device. */
export const own = (key: string) => (owner ? `${owner}.${key}` : key);

/** Signing out leaves nothing of the account on the device. */
export function forgetOwn() {
  signedOut = true; // what is still being written when the page is left is not kept
  if (!owner) return;
  try {
    for (const storage of [localStorage, sessionStorage])
      for (const name of Object.keys(storage))
        if (name.startsWith(nameOf(`${owner}.`))) storage.removeItem(name);
  } catch {
    // storage is switched off: there is nothing to forget
  }
}

/** `initial` must keep its identity from render to render. */
export function useStored<T>(key: string, initial: T): [T, (value: T | undefined) => void] {
  const value = useSyncExternalStore(
    (f) => subscribe(key, f),
    () => readStored(key, initial),
    () => initial,
  );
  return [value, (next) => writeStored(key, next)];
}

function subscribe(key: string, f: () => void) {
  const all = listeners.get(key) ?? new Set();
  listeners.set(key, all.add(f));
  const elsewhere = (event: StorageEvent) => (event.key === nameOf(key) || event.key === null) && f();
  window.addEventListener("storage", elsewhere);
  return () => {
    all.delete(f);
    window.removeEventListener("storage", elsewhere);
  };
}
