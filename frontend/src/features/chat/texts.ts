import type { LateMessages } from "@/i18n";

export const detailTexts: LateMessages = { en: () => import("./marks/en"), zh: () => import("./marks/zh") };
export const decisionTexts: LateMessages = {
  en: () => import("./interrupt/en"),
  zh: () => import("./interrupt/zh"),
};
