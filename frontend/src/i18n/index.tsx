"use client";
import { useEffect, useSyncExternalStore, type ReactNode } from "react";
import { IntlProvider, useTranslations } from "use-intl";
import { setWords } from "@/lib/http";
import { useStored } from "@/lib/storage";
import * as artifacts from "./messages/artifacts";
import * as auth from "./messages/auth";
import * as chat from "./messages/chat";
import * as common from "./messages/common";
import * as composer from "./messages/composer";
import * as markdown from "./messages/markdown";
import * as palette from "./messages/palette";
import * as settings from "./messages/settings";
import * as threads from "./messages/threads";

const features = { artifacts, auth, chat, common, composer, markdown, palette, settings, threads };
type Features = typeof features;
export type Messages = { [F in keyof Features]: Features[F]["en"] };
export type Locale = "en" | "zh";

const inLocale = (locale: Locale) =>
  Object.fromEntries(
    Object.entries(features).map(([name, both]) => [name, both[locale]]),
  ) as unknown as Messages;
export const messages: Record<Locale, Messages> = { en: inLocale("en"), zh: inLocale("zh") };

declare module "use-intl" {
  interface AppConfig {
    Messages: Messages;
  }
}

export const LOCALES: Record<Locale, string> = { en: "English", zh: "中文" };

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

export function LocaleProvider({ children }: { children: ReactNode }) {
  const [locale] = useLocale();
  useEffect(() => {
    setWords(messages[locale].common);
    document.documentElement.lang = locale === "zh" ? "zh-CN" : "en";
  }, [locale]);
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
  return (
    <IntlProvider locale={locale} messages={messages[locale]} timeZone={zone}>
      {children}
    </IntlProvider>
  );
}
