import { Cpu } from "lucide-react";
import { section } from "../parts/section";

export const models = section({
  id: "models",
  group: "server",
  icon: Cpu,
  load: () => import("."),
  texts: { en: () => import("./en"), zh: () => import("./zh") },
  title: { en: "Models", zh: "模型" },
  about: { en: "The models you can use.", zh: "可使用的模型。" },
  words: {
    en: "api key connect provider web search llm",
    zh: "密钥 接入 联网搜索 模型 api key connect web search models",
  },
});
