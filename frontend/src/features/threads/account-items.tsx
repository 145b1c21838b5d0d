"use client";
import { Archive, CircleHelp, Languages, LogOut, Settings, Sparkles, SunMoon } from "lucide-react";
import { useTheme } from "next-themes";
import { useRouter } from "next/navigation";
import { signOut, useAccount } from "@/features/auth";
import { LOCALES, useLocale, useT, type Locale } from "@/i18n";
import { settingsPath } from "@/lib/route";
import { shortcutLabel, SHORTCUTS } from "@/lib/shortcuts";
import {
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
} from "@/ui/dropdown-menu";
import { toast } from "@/ui/toast";

const THEMES = ["system", "light", "dark"] as const;

/** Items of the account menu. */
export default function AccountItems({ name, onArchived }: { name: string; onArchived?: () => void }) {
  const t = useT("threads");
  const common = useT("common");
  const router = useRouter();
  const { data: account } = useAccount();
  const { theme, setTheme } = useTheme();
  const [locale, setLocale] = useLocale();
  const leave = () =>
    signOut().catch((error: Error) => toast.error(t("signOutFailed"), { description: error.message }));
  return (
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
      <DropdownMenuItem onSelect={() => router.push(`${settingsPath("about")}?name=workspace`)}>
        <CircleHelp aria-hidden />
        {t("help")}
      </DropdownMenuItem>
      <DropdownMenuItem onSelect={() => router.push(`${settingsPath("about")}?name=changes`)}>
        <Sparkles aria-hidden />
        {t("changes")}
      </DropdownMenuItem>
      <DropdownMenuSeparator />
      <DropdownMenuItem onSelect={() => void leave()}>
        <LogOut aria-hidden />
        {t("signOut")}
      </DropdownMenuItem>
    </DropdownMenuContent>
  );
}
