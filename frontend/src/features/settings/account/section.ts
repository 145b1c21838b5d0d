import { UserRound } from "lucide-react";
import { section } from "../parts/section";

export const account = section({
  id: "account",
  group: "personal",
  icon: UserRound,
  load: () => import("."),
  texts: { en: () => import("./en"), zh: () => import("./zh") },
  title: { en: "Account", zh: "账号" },
  about: { en: "Your account on this server.", zh: "你在这台服务器上的身份。" },
  words: { en: "profile password email sign in", zh: "个人资料 密码 邮箱 profile" },
});
