import { ShieldCheck } from "lucide-react";
import { section } from "../parts/section";

export const sandbox = section({
  id: "sandbox",
  group: "server",
  icon: ShieldCheck,
  load: () => import("."),
  texts: { en: () => import("./en"), zh: () => import("./zh") },
  title: { en: "Sandbox", zh: "沙箱" },
  about: {
    en: "Where the agent’s commands run and what they can access.",
    zh: "智能体的命令在哪里运行，以及能访问什么。",
  },
});
