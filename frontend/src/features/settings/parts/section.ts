import type { LucideIcon } from "lucide-react";
import type { ComponentType } from "react";
import type { LateMessages, Locale } from "@/i18n";
import { late } from "@/lib/late";

type InEach = Record<Locale, string>;

interface Entry {
  /** In the address. */
  id: string;
  group: "personal" | "own" | "server";
  icon: LucideIcon;
  adminOnly?: boolean;
  title: InEach;
  /** One sentence below the title. */
  about: InEach;
  /** Other names that people type to find it in the palette. */
  words?: InEach;
  texts: LateMessages;
  load: () => Promise<{ default: ComponentType }>;
}

/** A page of the settings. Its entry is there at once; its code and texts are fetched when it is shown. */
export interface Section extends Entry {
  Content: ComponentType;
}

export const section = (entry: Entry): Section => ({ ...entry, Content: late(entry.load) });
