"use client";
import { Languages, Moon, Sun } from "lucide-react";
import { useTheme } from "next-themes";
import type { ReactNode } from "react";
import { LOCALES, useLocale, useT, type Locale } from "@/i18n";
import { Button } from "@/ui/button";
import {
  DropdownMenu,
  DropdownMenuContent,
  DropdownMenuRadioGroup,
  DropdownMenuRadioItem,
  DropdownMenuTrigger,
} from "@/ui/dropdown-menu";
import { IconButton } from "@/ui/icon-button";
import { Logo } from "@/ui/logo";

/** The page around a form for people who are not signed in. */
export function AuthFrame({
  title,
  text,
  children,
  footer,
}: Record<"title" | "text", string> & Record<"children" | "footer", ReactNode>) {
  const common = useT("common");
  return (
    <div className="flex min-h-dvh flex-col bg-sidebar">
      <header className="flex items-center justify-between p-3 sm:p-4">
        <div className="flex items-center gap-2 px-1 font-display text-base font-semibold tracking-[-0.012em]">
          <Logo className="size-5 text-primary" />
          {common("appName")}
        </div>
        <Preferences />
      </header>
      <main className="flex flex-1 flex-col items-center justify-center px-4 pt-2 pb-[12dvh]">
        <div className="w-full max-w-sm rounded-2xl border bg-card p-6 shadow-sm sm:p-8">
          <h1 className="text-2xl font-semibold text-balance">{title}</h1>
          <p className="mt-1.5 mb-6 leading-relaxed text-pretty text-muted-foreground">{text}</p>
          {children}
        </div>
        <div className="mt-5 min-h-5 text-center text-[13px] text-muted-foreground">{footer}</div>
      </main>
    </div>
  );
}

function Preferences() {
  const t = useT("auth");
  const { resolvedTheme, setTheme } = useTheme();
  const [locale, setLocale] = useLocale();
  return (
    <div className="flex items-center gap-1 text-muted-foreground">
      <DropdownMenu>
        <DropdownMenuTrigger asChild>
          <Button variant="ghost" size="sm" aria-label={`${t("language")}: ${LOCALES[locale]}`}>
            <Languages aria-hidden />
            {LOCALES[locale]}
          </Button>
        </DropdownMenuTrigger>
        <DropdownMenuContent align="end" className="min-w-36">
          <DropdownMenuRadioGroup value={locale} onValueChange={(next) => setLocale(next as Locale)}>
            {Object.entries(LOCALES).map(([value, name]) => (
              <DropdownMenuRadioItem key={value} value={value} lang={value}>
                {name}
              </DropdownMenuRadioItem>
            ))}
          </DropdownMenuRadioGroup>
        </DropdownMenuContent>
      </DropdownMenu>
      <IconButton label={t("theme")} onClick={() => setTheme(resolvedTheme === "dark" ? "light" : "dark")}>
        <Sun aria-hidden className="dark:hidden" />
        <Moon aria-hidden className="hidden dark:block" />
      </IconButton>
    </div>
  );
}
