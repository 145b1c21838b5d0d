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
  PenLine,
  ShieldCheck,
  ShieldQuestion,
  UserRound,
  Users,
  type LucideIcon,
} from "lucide-react";
import { type ComponentType } from "react";
import { late } from "@/lib/late";
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
  account: { group: "personal", icon: UserRound, Content: late(() => import("./account")) },
  appearance: { group: "personal", icon: Palette, Content: late(() => import("./appearance")) },
  notifications: { group: "personal", icon: Bell, Content: late(() => import("./notifications")) },
  tokens: { group: "personal", icon: KeyRound, Content: late(() => import("./tokens")) },
  approvals: { group: "personal", icon: ShieldQuestion, Content: late(() => import("./approvals")) },
  instructions: { group: "own", icon: PenLine, Content: late(() => import("./instructions")) },
  memory: { group: "own", icon: Brain, Content: late(() => import("./memory")) },
  skills: { group: "own", icon: BookOpenText, Content: late(() => import("./skills")) },
  agents: { group: "own", icon: Bot, Content: late(() => import("./agents")) },
  mcp: { group: "own", icon: Cable, Content: late(() => import("./mcp")) },
  channels: { group: "own", icon: MessagesSquare, Content: late(() => import("./channels")) },
  models: { group: "server", icon: Cpu, Content: late(() => import("./models")) },
  usage: { group: "personal", icon: ChartColumn, Content: late(() => import("./usage")) },
  sandbox: { group: "server", icon: ShieldCheck, Content: late(() => import("./sandbox")) },
  users: { group: "server", icon: Users, Content: late(() => import("./users")), adminOnly: true },
  about: { group: "server", icon: Info, Content: late(() => import("./about")) },
};

/** All sections in their order. */
export const SECTIONS: Section[] = SETTINGS.map((id) => ({ id, ...SECTIONS_BY_ID[id] }));
