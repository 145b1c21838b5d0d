import { Brain } from "lucide-react";
import { section } from "../parts/section";

export const memory = section({
  id: "memory",
  group: "own",
  icon: Brain,
  load: () => import("."),
  texts: { en: () => import("./en"), zh: () => import("./zh") },
  title: { en: "Memory", zh: "记忆" },
  about: {
    en: "What DeerFlow has learned about you and uses in later chats. Only you can see it.",
    zh: "DeerFlow 了解到的关于你的信息，会用于之后的对话。只有你能看到。",
  },
  words: { en: "remember personalization", zh: "记住 个性化 personalization" },
});
