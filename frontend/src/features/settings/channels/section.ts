import { MessagesSquare } from "lucide-react";
import { section } from "../parts/section";

export const channels = section({
  id: "channels",
  group: "own",
  icon: MessagesSquare,
  load: () => import("."),
  texts: { en: () => import("./en"), zh: () => import("./zh") },
  title: { en: "Channels", zh: "渠道" },
  about: {
    en: "Bots of chat platforms, and your accounts there.",
    zh: "聊天平台上的机器人，以及你在那里的账号。",
  },
  words: {
    en: "slack telegram feishu lark discord email wechat dingtalk",
    zh: "飞书 钉钉 微信 企业微信 邮件 slack telegram",
  },
});
