import { Users } from "lucide-react";
import { section } from "../parts/section";

export const users = section({
  id: "users",
  group: "server",
  icon: Users,
  adminOnly: true,
  load: () => import("."),
  texts: { en: () => import("./en"), zh: () => import("./zh") },
  title: { en: "People", zh: "成员" },
  about: {
    en: "Chats and files are private. Nobody else can see them, not even administrators.",
    zh: "每个人的对话和文件都只属于自己，其他人（包括管理员）无法查看。",
  },
  words: { en: "people members invite team accounts", zh: "成员 用户 邀请 团队 people" },
});
