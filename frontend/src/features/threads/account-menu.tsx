"use client";
import { ChevronsUpDown } from "lucide-react";
import { Suspense } from "react";
import { useAccount } from "@/features/auth";
import { useT } from "@/i18n";
import { cn } from "@/lib/cn";
import { afterPage } from "@/lib/late";
import { DropdownMenu, DropdownMenuTrigger } from "@/ui/dropdown-menu";

const AccountItems = afterPage(() => import("./account-items"));

/** The current account, and items about the whole product. `small`: only the letter. */
export function AccountMenu({ small = false, onArchived }: { small?: boolean; onArchived?: () => void }) {
  const t = useT("threads");
  const { data: account } = useAccount();
  const name = account?.email ?? t("account");
  return (
    <DropdownMenu>
      <DropdownMenuTrigger asChild>
        <button
          type="button"
          aria-label={small ? `${t("account")}: ${name}` : undefined}
          className={cn(
            "flex items-center gap-2.5 rounded-lg text-left text-[13px] transition-colors hover:bg-sidebar-accent data-[state=open]:bg-sidebar-accent",
            small ? "size-9 justify-center" : "w-full px-2 py-1.5 pointer-coarse:min-h-11",
          )}
        >
          <span
            aria-hidden
            className="flex size-7 shrink-0 items-center justify-center rounded-full bg-primary-soft text-xs font-semibold text-primary uppercase"
          >
            {name.charAt(0)}
          </span>
          {!small && (
            <>
              <span className="min-w-0 flex-1 truncate">{name}</span>
              <ChevronsUpDown aria-hidden className="size-3.5 shrink-0 text-muted-foreground" />
            </>
          )}
        </button>
      </DropdownMenuTrigger>
      <Suspense>
        <AccountItems name={name} onArchived={onArchived} />
      </Suspense>
    </DropdownMenu>
  );
}
