import type { LateMessages } from "@/i18n";

export const texts: LateMessages = { en: () => import("./en"), zh: () => import("./zh") };
