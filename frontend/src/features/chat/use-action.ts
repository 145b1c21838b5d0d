"use client";
import { useState } from "react";

/** Something that takes a while and may fail: whether it goes on, and what went wrong. */
export function useAction() {
  const [pending, setPending] = useState(false);
  const [error, setError] = useState<string | null>(null);
  /** Resolves to whether it worked. */
  const run = async (action: () => Promise<unknown>): Promise<boolean> => {
    setPending(true);
    setError(null);
    try {
      await action();
      return true;
    } catch (problem) {
      setError(problem instanceof Error ? problem.message : String(problem));
      return false;
    } finally {
      setPending(false);
    }
  };
  return { pending, error, run };
}
