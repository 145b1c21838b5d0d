"use client";
import { useEffect, useState, useSyncExternalStore, type ReactNode } from "react";
import { IntlProvider, useLocale as useIntlLocale, useMessages, useTranslations } from "use-intl";
import { setWords } from "@/lib/http";
import { loadLate } from "@/lib/late";
import { useStored } from "@/lib/storage";
import { en } from "./messages/en";
import type { server } from "./messages/en/server";

export type Locale = "en" | "zh";

type First = typeof en;

/** All texts. Those of a part that comes late are declared beside it, in its `en.ts`. */
export interface Messages extends First {
  server: typeof server;
}

/** Texts that are no part of the first load, see `LateTexts`. */
export type LateMessages = Record<Locale, () => Promise<Partial<Messages>>>;

declare module "use-intl" {
  interface AppConfig {
    Messages: Messages;
  }
}

export const LOCALES: Record<Locale, string> = { en: "English", zh: "中文" };

const loadMessages: Record<Locale, () => Promise<typeof en>> = {
  en: async () => en,
  zh: async () => (await import("./messages/zh")).zh,
};
/** Late texts: the server's refusals and failures in words of the page. */
export const serverTexts = {
  en: () => import("./messages/en/server"),
  zh: () => import("./messages/zh/server"),
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
/** The language of the texts that are there: a new one is chosen before its texts have come. */
export const useShownLocale = () => useIntlLocale() as Locale;
/** All texts that are there, for what is looked up by a code of the server (`worded`). */
export const useWords = useMessages;

/** Only the language in use is loaded; until another one is there, the page stays in the one before. */
export function LocaleProvider({ children }: { children: ReactNode }) {
  const [locale] = useLocale();
  const [shown, setShown] = useState<{ locale: Locale; messages: typeof en }>({ locale: "en", messages: en });
  useEffect(() => {
    let current = true;
    void loadLate(loadMessages[locale]).then((messages) => {
      if (!current) return;
      setShown({ locale, messages });
      setWords(messages.common, async (refusal) => {
        const [{ worded }, { server }] = await Promise.all([import("./worded"), serverTexts[locale]()]);
        return worded(locale, server.error, refusal);
      });
      document.documentElement.lang = locale === "zh" ? "zh-CN" : "en";
    });
    return () => {
      current = false;
    };
  }, [locale]);
  return <Texts {...shown}>{children}</Texts>;
}

interface LateTextsProps {
  of: LateMessages;
  children: ReactNode;
  /** Until the texts are there. */
  fallback?: ReactNode;
}

/** Texts that have come, by what loads them: what is shown again has its texts at once. */
const arrived = new Map<() => Promise<Partial<Messages>>, Partial<Messages>>();

/** Gives `children` the texts of a feature that are no part of the first load. */
export function LateTexts({ of, children, fallback }: LateTextsProps) {
  const locale = useShownLocale();
  const load = of[locale];
  const messages = useMessages();
  const [late, setLate] = useState(arrived.get(load) ?? null);
  useEffect(() => {
    let current = true;
    void loadLate(load).then((loaded) => {
      arrived.set(load, loaded);
      if (current) setLate(loaded);
    });
    return () => {
      current = false;
    };
  }, [load]);
  if (!late) return fallback;
  return (
    <Texts locale={locale} messages={{ ...messages, ...late }}>
      {children}
    </Texts>
  );
}

function Texts({
  locale,
  messages,
  children,
}: {
  locale: Locale;
  messages: Partial<Messages>;
  children: ReactNode;
}) {
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
  return (
    <IntlProvider locale={locale} messages={messages} timeZone={zone}>
      {children}
    </IntlProvider>
  );
}
