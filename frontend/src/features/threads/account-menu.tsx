"use client";
import { Archive, ChevronsUpDown, Languages, LogOut, Settings, SunMoon } from "lucide-react";
import { useTheme } from "next-themes";
import { useRouter } from "next/navigation";
import { toast } from "@/ui/toast";
import { signOut, useAccount } from "@/features/auth";
import { LOCALES, useLocale, useT, type Locale } from "@/i18n";
import { cn } from "@/lib/cn";
import { settingsPath } from "@/lib/route";
import { shortcutLabel, SHORTCUTS } from "@/lib/shortcuts";
import {
  DropdownMenu,
  DropdownMenuContent,
  DropdownMenuItem,
  DropdownMenuLabel,
  DropdownMenuRadioGroup,
  DropdownMenuRadioItem,
  DropdownMenuSeparator,
  DropdownMenuShortcut,
  DropdownMenuSub,
  DropdownMenuSubContent,
  DropdownMenuSubTrigger,
  DropdownMenuTrigger,
} from "@/ui/dropdown-menu";

const THEMES = ["system", "light", "dark"] as const;

/** Who is signed in, and what concerns the whole product. `small`: only the letter. */
export function AccountMenu({ small = false, onArchived }: { small?: boolean; onArchived?: () => void }) {
  const t = useT("threads");
  const common = useT("common");
  const router = useRouter();
  const { data: account } = useAccount();
  const { theme, setTheme } = useTheme();
  const [locale, setLocale] = useLocale();
  const name = account?.email ?? t("account");
  const leave = () =>
    signOut().catch((error: Error) => toast.error(t("signOutFailed"), { description: error.message }));
  return (
    <DropdownMenu modal={false}>
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
      <DropdownMenuContent side="top" align="start" className="w-60">
        <DropdownMenuLabel className="truncate">
          {name}
          {account?.system_role === "admin" && ` · ${t("admin")}`}
        </DropdownMenuLabel>
        <DropdownMenuItem onSelect={() => router.push(settingsPath())}>
          <Settings aria-hidden />
          {common("settings")}
          <DropdownMenuShortcut>{shortcutLabel(SHORTCUTS.settings)}</DropdownMenuShortcut>
        </DropdownMenuItem>
        {onArchived && (
          <DropdownMenuItem onSelect={onArchived}>
            <Archive aria-hidden />
            {t("archivedChats")}
          </DropdownMenuItem>
        )}
        <DropdownMenuSub>
          <DropdownMenuSubTrigger>
            <SunMoon aria-hidden />
            {t("theme")}
          </DropdownMenuSubTrigger>
          <DropdownMenuSubContent>
            <DropdownMenuRadioGroup value={theme} onValueChange={setTheme}>
              {THEMES.map((one) => (
                <DropdownMenuRadioItem key={one} value={one}>
                  {t(`themes.${one}`)}
                </DropdownMenuRadioItem>
              ))}
            </DropdownMenuRadioGroup>
          </DropdownMenuSubContent>
        </DropdownMenuSub>
        <DropdownMenuSub>
          <DropdownMenuSubTrigger>
            <Languages aria-hidden />
            {t("language")}
          </DropdownMenuSubTrigger>
          <DropdownMenuSubContent>
            <DropdownMenuRadioGroup value={locale} onValueChange={(next) => setLocale(next as Locale)}>
              {Object.entries(LOCALES).map(([code, label]) => (
                <DropdownMenuRadioItem key={code} value={code}>
                  {label}
                </DropdownMenuRadioItem>
              ))}
            </DropdownMenuRadioGroup>
          </DropdownMenuSubContent>
        </DropdownMenuSub>
        <DropdownMenuSeparator />
        <DropdownMenuItem onSelect={() => void leave()}>
          <LogOut aria-hidden />
          {t("signOut")}
        </DropdownMenuItem>
      </DropdownMenuContent>
    </DropdownMenu>
  );
}
