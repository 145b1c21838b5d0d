"use client";
import { useEffect } from "react";
import { useThreadId } from "@/lib/route";
import { own, readStored, useStored, writeStored } from "@/lib/storage";
import type { ThreadItem } from "./group";

/** By thread: when it had last changed when its failure was read on this device. */
type Read = Record<string, string>;

const NONE: Read = {};
/** The newest are kept. */
const KEPT = 200;

/** True if the person has seen the failure of a thread: they looked at it, and nothing has happened since. */
export function useRead({ id, status, updatedAt }: ThreadItem): boolean {
  const key = own("read");
  const [read] = useStored(key, NONE);
  const isOpen = useThreadId() === id;
  const isKnown = read[id] === updatedAt;
  useEffect(() => {
    if (!isOpen || status !== "error" || isKnown) return;
    const others = Object.entries(readStored(key, NONE)).filter(([other]) => other !== id);
    writeStored(key, Object.fromEntries([...others, [id, updatedAt]].slice(-KEPT)));
  }, [key, id, status, updatedAt, isOpen, isKnown]);
  return isOpen || isKnown;
}
