"use client";
import { useEffect, useState, useSyncExternalStore, type ReactNode } from "react";
import { IntlProvider, useLocale as useShownLocale, useMessages, useTranslations } from "use-intl";
import { setWords } from "@/lib/http";
import { loadLate } from "@/lib/late";
import { useStored } from "@/lib/storage";
import { en, type LateMessages, type Messages } from "./messages/en";

export type { Messages };
export type Locale = "en" | "zh";

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
/** Texts that are no part of the first load: each feature's come with what shows them, see `LateTexts`. */
export const LATE: { [Name in keyof LateMessages]: Record<Locale, () => Promise<Pick<LateMessages, Name>>> } =
  {
    runs: { en: () => import("./messages/en/runs"), zh: () => import("./messages/zh/runs") },
    tasks: { en: () => import("./messages/en/tasks"), zh: () => import("./messages/zh/tasks") },
    decisions: { en: () => import("./messages/en/decisions"), zh: () => import("./messages/zh/decisions") },
    details: { en: () => import("./messages/en/details"), zh: () => import("./messages/zh/details") },
    settings: { en: () => import("./messages/en/settings"), zh: () => import("./messages/zh/settings") },
    channels: { en: () => import("./messages/en/channels"), zh: () => import("./messages/zh/channels") },
    mcp: { en: () => import("./messages/en/mcp"), zh: () => import("./messages/zh/mcp") },
    viewers: { en: () => import("./messages/en/viewers"), zh: () => import("./messages/zh/viewers") },
    voice: { en: () => import("./messages/en/voice"), zh: () => import("./messages/zh/voice") },
    web: { en: () => import("./messages/en/web"), zh: () => import("./messages/zh/web") },
    skills: { en: () => import("./messages/en/skills"), zh: () => import("./messages/zh/skills") },
    agents: { en: () => import("./messages/en/agents"), zh: () => import("./messages/zh/agents") },
    sandbox: { en: () => import("./messages/en/sandbox"), zh: () => import("./messages/zh/sandbox") },
    server: { en: () => import("./messages/en/server"), zh: () => import("./messages/zh/server") },
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
        const [{ worded }, { server }] = await Promise.all([import("./worded"), LATE.server[locale]()]);
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
  of: keyof LateMessages;
  children: ReactNode;
  /** Until the texts are there. */
  fallback?: ReactNode;
}

/** Gives `children` the texts of a feature that are no part of the first load. */
export function LateTexts({ of, children, fallback }: LateTextsProps) {
  const locale = useShownLocale() as Locale;
  const messages = useMessages();
  const [late, setLate] = useState<Partial<LateMessages> | null>(null);
  useEffect(() => {
    let current = true;
    void loadLate<Partial<LateMessages>>(LATE[of][locale]).then((loaded) => current && setLate(loaded));
    return () => {
      current = false;
    };
  }, [of, locale]);
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
