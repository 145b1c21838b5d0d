import {
  Bell,
  BookOpenText,
  Bot,
  Brain,
  Cable,
  ChartColumn,
  Cpu,
  Info,
  KeyRound,
  MessagesSquare,
  Palette,
  ShieldCheck,
  ShieldQuestion,
  UserRound,
  Users,
  type LucideIcon,
} from "lucide-react";
import { lazy, type ComponentType } from "react";
import { SETTINGS, type SettingsSection } from "@/lib/route";

export interface Section {
  /** In the address, and of its texts: `sections.<id>` and `settings.about.<id>`. */
  id: SettingsSection;
  group: "personal" | "own" | "server";
  icon: LucideIcon;
  Content: ComponentType;
  adminOnly?: boolean;
}

const SECTIONS_BY_ID: Record<SettingsSection, Omit<Section, "id">> = {
  account: { group: "personal", icon: UserRound, Content: lazy(() => import("./account")) },
  appearance: { group: "personal", icon: Palette, Content: lazy(() => import("./appearance")) },
  notifications: { group: "personal", icon: Bell, Content: lazy(() => import("./notifications")) },
  tokens: { group: "personal", icon: KeyRound, Content: lazy(() => import("./tokens")) },
  approvals: { group: "personal", icon: ShieldQuestion, Content: lazy(() => import("./approvals")) },
  memory: { group: "own", icon: Brain, Content: lazy(() => import("./memory")) },
  skills: { group: "own", icon: BookOpenText, Content: lazy(() => import("./skills")) },
  agents: { group: "own", icon: Bot, Content: lazy(() => import("./agents")) },
  mcp: { group: "own", icon: Cable, Content: lazy(() => import("./mcp")) },
  channels: { group: "own", icon: MessagesSquare, Content: lazy(() => import("./channels")) },
  models: { group: "server", icon: Cpu, Content: lazy(() => import("./models")) },
  usage: { group: "personal", icon: ChartColumn, Content: lazy(() => import("./usage")) },
  sandbox: { group: "server", icon: ShieldCheck, Content: lazy(() => import("./sandbox")) },
  users: { group: "server", icon: Users, Content: lazy(() => import("./users")), adminOnly: true },
  about: { group: "server", icon: Info, Content: lazy(() => import("./about")) },
};

/** All sections in their order. */
export const SECTIONS: Section[] = SETTINGS.map((id) => ({ id, ...SECTIONS_BY_ID[id] }));
