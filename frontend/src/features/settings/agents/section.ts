import { Bot } from "lucide-react";
import { section } from "../parts/section";

export const agents = section({
  id: "agents",
  group: "own",
  icon: Bot,
  load: () => import("."),
  texts: { en: () => import("./en"), zh: () => import("./zh") },
  title: { en: "Agents", zh: "智能体" },
  about: {
    en: "Agents with their own character, tools and memory. Only you can see yours.",
    zh: "拥有自己的个性、工具和记忆的智能体。只有你能看到你的智能体。",
  },
});
