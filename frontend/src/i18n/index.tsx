"use client";
import { useEffect, useState, useSyncExternalStore, type ReactNode } from "react";
import { IntlProvider, useTranslations } from "use-intl";
import { setWords } from "@/lib/http";
import { useStored } from "@/lib/storage";
import { en, type Messages } from "./messages/en";

export type { Messages };
export type Locale = "en" | "zh";

declare module "use-intl" {
  interface AppConfig {
    Messages: Messages;
  }
}

export const LOCALES: Record<Locale, string> = { en: "English", zh: "中文" };

const loadMessages: Record<Locale, () => Promise<Messages>> = {
  en: async () => en,
  zh: async () => (await import("./messages/zh")).zh,
};

const never = () => () => undefined;

/** The language of the page and how to change it: what this device was set to, else what its browser prefers. */
export function useLocale(): [Locale, (locale: Locale) => void] {
  const [stored, store] = useStored<Locale | null>("locale", null);
  // The page is rendered before there is a browser: the first picture must be the same with and without one.
  const preferred = useSyncExternalStore(
    never,
    () => navigator.language.slice(0, 2),
    () => "en",
  );
  const known = [stored, preferred].find((one): one is Locale => one === "en" || one === "zh");
  return [known ?? "en", store];
}

/** Texts of a feature: `useT("chat")("stop")`. */
export const useT = useTranslations;

/** Only the language in use is loaded; until another one is there, the page stays in the one before. */
export function LocaleProvider({ children }: { children: ReactNode }) {
  const [locale] = useLocale();
  const [shown, setShown] = useState<{ locale: Locale; messages: Messages }>({ locale: "en", messages: en });
  useEffect(() => {
    let current = true;
    void loadMessages[locale]().then((messages) => {
      if (!current) return;
      setShown({ locale, messages });
      setWords(messages.common);
      document.documentElement.lang = locale === "zh" ? "zh-CN" : "en";
    });
    return () => {
      current = false;
    };
  }, [locale]);
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
  return (
    <IntlProvider locale={shown.locale} messages={shown.messages} timeZone={zone}>
      {children}
    </IntlProvider>
  );
}
