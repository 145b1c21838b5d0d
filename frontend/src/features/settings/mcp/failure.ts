"use client";
import { useLocale, useWords } from "@/i18n";
import { worded } from "@/i18n/worded";
import type { Server } from "./api";

/** Reason for a server's failure: in words of the page if the sentence is DeerFlow's, else as its author wrote it. */
export function useFailure() {
  const [locale] = useLocale();
  const words = useWords().mcp.failure;
  return ({ error, reason, values }: Pick<Server, "error" | "reason" | "values">) =>
    worded(locale, words, { detail: error, reason: reason ?? undefined, values }).trim();
}
