"use client";
import { useEffect, useState } from "react";

/** What is typed, once the person pauses for so many milliseconds; nothing at once when it is cleared. */
export function useDebounced(text: string, delay: number): string {
  const [settled, setSettled] = useState(text);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(text), text ? delay : 0);
    return () => clearTimeout(timer);
  }, [text, delay]);
  return settled;
}
