import { BookOpenText } from "lucide-react";
import { section } from "../parts/section";

export const skills = section({
  id: "skills",
  group: "own",
  icon: BookOpenText,
  load: () => import("."),
  texts: { en: () => import("./en"), zh: () => import("./zh") },
  title: { en: "Skills", zh: "技能" },
  about: {
    en: "Instructions for kinds of tasks. Your agents read one when a task needs it.",
    zh: "针对各类任务的说明。智能体在需要时阅读。",
  },
  words: { en: "slash commands plugins", zh: "斜杠命令 插件 skills" },
});
