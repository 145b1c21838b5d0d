import {
  Bell,
  Bot,
  Info,
  KeyRound,
  Palette,
  ShieldCheck,
  UserRound,
  Users,
  type LucideIcon,
} from "lucide-react";
import type { ComponentType } from "react";
import { SETTINGS, type SettingsSection } from "@/lib/route";
import { AboutSection } from "./about";
import { AccountSection } from "./account";
import { AppearanceSection } from "./appearance";
import { ModelsSection } from "./models";
import { NotificationsSection } from "./notifications";
import { SandboxSection } from "./sandbox";
import { TokensSection } from "./tokens";
import { UsersSection } from "./users";

export interface Section {
  /** In the address, and of its texts: `section.<id>` and `about.<id>`. */
  id: SettingsSection;
  group: "personal" | "server";
  icon: LucideIcon;
  Content: ComponentType;
  adminOnly?: boolean;
}

const SECTIONS_BY_ID: Record<SettingsSection, Omit<Section, "id">> = {
  account: { group: "personal", icon: UserRound, Content: AccountSection },
  appearance: { group: "personal", icon: Palette, Content: AppearanceSection },
  notifications: { group: "personal", icon: Bell, Content: NotificationsSection },
  tokens: { group: "personal", icon: KeyRound, Content: TokensSection },
  models: { group: "server", icon: Bot, Content: ModelsSection },
  sandbox: { group: "server", icon: ShieldCheck, Content: SandboxSection },
  users: { group: "server", icon: Users, Content: UsersSection, adminOnly: true },
  about: { group: "server", icon: Info, Content: AboutSection },
};

/** All sections in their order. */
export const SECTIONS: Section[] = SETTINGS.map((id) => ({ id, ...SECTIONS_BY_ID[id] }));
