import { ShieldQuestion } from "lucide-react";
import { section } from "../parts/section";

export const approvals = section({
  id: "approvals",
  group: "personal",
  icon: ShieldQuestion,
  load: () => import("."),
  texts: { en: () => import("./en"), zh: () => import("./zh") },
  title: { en: "Approvals", zh: "授权" },
  about: { en: "Tool calls that run without asking you again.", zh: "这些工具调用不再逐次询问你。" },
  words: { en: "permissions allow", zh: "权限 允许 approvals" },
});
