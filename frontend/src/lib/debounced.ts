"use client";
import { useEffect, useState } from "react";

/** The typed text after a pause of so many milliseconds; empty at once when it is cleared. */
export function useDebounced(text: string, delay: number): string {
  const [settled, setSettled] = useState(text);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(text), text ? delay : 0);
    return () => clearTimeout(timer);
  }, [text, delay]);
  return settled;
}
