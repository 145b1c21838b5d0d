import { KeyRound } from "lucide-react";
import { section } from "../parts/section";

export const tokens = section({
  id: "tokens",
  group: "personal",
  icon: KeyRound,
  load: () => import("."),
  texts: { en: () => import("./en"), zh: () => import("./zh") },
  title: { en: "API tokens", zh: "API 令牌" },
  about: { en: "Let programs act on your behalf.", zh: "供代表你工作的程序使用。" },
  words: { en: "api key access token", zh: "密钥 令牌 api key tokens" },
});
