"use client";
import { usePathname, useRouter, useSearchParams } from "next/navigation";
import { useEffect, type ReactNode } from "react";
import { useT } from "@/i18n";
import { ErrorState } from "@/ui/error-state";
import { Logo } from "@/ui/logo";
import { Unreachable } from "./unreachable";
import { decide, isUnauthenticated } from "./guard";
import { useAccount, useSetupStatus } from "./use-account";

/** Show `children` to people who are signed in (or if the server needs no sign-in); redirect others. */
export function AuthGuard({ waiting, children }: { waiting?: ReactNode; children: ReactNode }) {
  const t = useT("auth");
  const common = useT("common");
  const router = useRouter();
  const query = useSearchParams().toString();
  const here = usePathname() + (query && `?${query}`);
  const account = useAccount();
  const setup = useSetupStatus(isUnauthenticated(account.error) && !account.data);
  const decision = decide({
    known: account.data !== undefined,
    error: account.error,
    setup: setup.data,
    setupError: setup.error,
    here,
  });
  const to = decision.kind === "go" ? decision.to : null;
  useEffect(() => {
    if (to) router.replace(to);
  }, [router, to]);

  if (decision.kind === "show") return children;
  if (decision.kind === "unreachable")
    return <Unreachable trying={account.isFetching || setup.isFetching} retry={() => account.refetch()} />;
  if (decision.kind === "failed")
    return (
      <main className="flex min-h-dvh items-center justify-center">
        <ErrorState title={t("failedTitle")} error={decision.error} retry={() => account.refetch()} />
      </main>
    );
  if (waiting) return waiting;
  return (
    <div role="status" className="flex h-dvh items-center justify-center">
      <Logo className="size-8 animate-breathe text-muted-foreground/60" />
      <span className="sr-only">{common("loading")}</span>
    </div>
  );
}
