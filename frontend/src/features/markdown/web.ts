import type { LateMessages } from "@/i18n";
import { late } from "@/lib/late";

/** Texts about sources and pictures of the web. */
export const webTexts: LateMessages = { en: () => import("./en"), zh: () => import("./zh") };

/** A picture of another site, with these texts around it. */
export const RemotePicture = late(() => import("./remote-picture"));
