import { PenLine } from "lucide-react";
import { section } from "../parts/section";

export const instructions = section({
  id: "instructions",
  group: "own",
  icon: PenLine,
  load: () => import("."),
  texts: { en: () => import("./en"), zh: () => import("./zh") },
  title: { en: "Instructions", zh: "自定义指令" },
  about: {
    en: "What every agent knows about you and how it should work for you.",
    zh: "所有智能体都会了解这些内容，并据此为你工作。",
  },
  words: {
    en: "custom personalization about me profile",
    zh: "自定义 个性化 关于我 custom instructions personalization",
  },
});
