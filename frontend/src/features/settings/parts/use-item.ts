"use client";
import { useSearchParams } from "next/navigation";

/** The open item of a section, `?name=…` in the address: null is the list. "Back" of the browser leads to the list. */
export function useItem(): [string | null, (name: string | null) => void] {
  const name = useSearchParams().get("name");
  const open = (next: string | null) => {
    const query = next === null ? "" : `?${new URLSearchParams({ name: next })}`;
    const address = window.location.pathname + query;
    if (next === null) window.history.replaceState(null, "", address);
    else window.history.pushState(null, "", address);
  };
  return [name, open];
}

export const itemPath = (name: string) => `?${new URLSearchParams({ name })}`;
