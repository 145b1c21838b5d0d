"use client";
import { Languages, Moon, Sun } from "lucide-react";
import { useTheme } from "next-themes";
import type { ReactNode } from "react";
import { LOCALES, useLocale, useT, type Locale } from "@/i18n";
import { Button } from "@/ui/button";
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

/** Native controls: our own menus and tooltips would be a sixth of the page. */
function Preferences() {
  const t = useT("auth");
  const { resolvedTheme, setTheme } = useTheme();
  const [locale, setLocale] = useLocale();
  return (
    <div className="flex items-center gap-1 text-muted-foreground">
      <label className="relative flex items-center">
        <Languages aria-hidden className="pointer-events-none absolute left-2.5 size-4" />
        <select
          aria-label={t("language")}
          value={locale}
          onChange={(event) => setLocale(event.target.value as Locale)}
          className="h-8 rounded-lg bg-transparent pr-2 pl-8.5 text-[13px] font-medium transition-colors hover:bg-accent hover:text-accent-foreground pointer-coarse:h-11 [&>option]:bg-popover [&>option]:text-popover-foreground"
        >
          {Object.entries(LOCALES).map(([value, name]) => (
            <option key={value} value={value} lang={value}>
              {name}
            </option>
          ))}
        </select>
      </label>
      <Button
        variant="ghost"
        size="icon-sm"
        aria-label={t("theme")}
        title={t("theme")}
        onClick={() => setTheme(resolvedTheme === "dark" ? "light" : "dark")}
      >
        <Sun aria-hidden className="dark:hidden" />
        <Moon aria-hidden className="hidden dark:block" />
      </Button>
    </div>
  );
}
