"use client";
import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { ThemeProvider } from "next-themes";
import dynamic from "next/dynamic";
import { useState, type ReactNode } from "react";
import { LocaleProvider } from "@/i18n";
import { ApiError } from "@/lib/http";
import { loadLate } from "@/lib/late";
import { Toaster } from "@/ui/toast";

// Not needed to show a page, so they come after it.
const SessionExpiredDialog = dynamic(
  () => loadLate(() => import("@/features/auth")).then((auth) => auth.SessionExpiredDialog),
  { ssr: false },
);
const KeepFocus = dynamic(() => loadLate(() => import("@/ui/keep-focus")).then((focus) => focus.KeepFocus), {
  ssr: false,
});

/** Only what may work the next time is asked again. */
const worthRetrying = (count: number, error: Error) =>
  count < 2 && (!(error instanceof ApiError) || error.status === 0 || error.status >= 502);

export function Providers({ children }: { children: ReactNode }) {
  const [client] = useState(
    () => new QueryClient({ defaultOptions: { queries: { staleTime: 10_000, retry: worthRetrying } } }),
  );
  return (
    <ThemeProvider attribute="class" defaultTheme="system" enableSystem disableTransitionOnChange>
      <LocaleProvider>
        <QueryClientProvider client={client}>
          {children}
          <SessionExpiredDialog />
          <KeepFocus />
          <Toaster />
        </QueryClientProvider>
      </LocaleProvider>
    </ThemeProvider>
  );
}
