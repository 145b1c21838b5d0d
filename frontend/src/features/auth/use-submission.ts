"use client";
import { useEffect, useState } from "react";
import { useT } from "@/i18n";
import { ApiError } from "@/lib/http";

/** Text for an error; `wait` is the number of seconds until another try is allowed. */
export function useErrorText(): (error: unknown, wait?: number) => string {
  const t = useT("auth");
  return (error, wait = 0) => {
    if (!(error instanceof ApiError)) return error instanceof Error ? error.message : String(error);
    if (error.status === 429 && wait > 0)
      return wait > 90
        ? t("error.throttledMinutes", { minutes: Math.ceil(wait / 60) })
        : t("error.throttled", { seconds: wait });
    return error.message;
  };
}

/** A form that is sent: whether it is on its way, what went wrong, and, if it came too often, the seconds to wait. */
export function useSubmission() {
  const text = useErrorText();
  const [pending, setPending] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const [wait, setWait] = useState(0);
  useEffect(() => {
    if (wait <= 0) return;
    const timer = setTimeout(() => setWait(wait - 1), 1000);
    return () => clearTimeout(timer);
  }, [wait]);

  const submit = async (send: () => Promise<unknown>) => {
    setPending(true);
    setError(null);
    try {
      await send();
    } catch (problem) {
      setError(problem);
      setWait(problem instanceof ApiError && problem.status === 429 ? (problem.retryAfter ?? 30) : 0);
    }
    setPending(false);
  };
  const throttled = error instanceof ApiError && error.status === 429;
  const message = error && !(throttled && wait <= 0) ? text(error, wait) : null;
  return { submit, pending, blocked: wait > 0, error, message, clear: () => setError(null) };
}
