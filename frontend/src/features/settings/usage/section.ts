import { ChartColumn } from "lucide-react";
import { section } from "../parts/section";

export const usage = section({
  id: "usage",
  group: "personal",
  icon: ChartColumn,
  load: () => import("."),
  texts: { en: () => import("./en"), zh: () => import("./zh") },
  title: { en: "Usage", zh: "用量" },
  about: { en: "What your runs used and what it cost.", zh: "你的运行用了多少 token，花了多少钱。" },
  words: { en: "cost billing spending money", zh: "费用 花费 账单 cost billing" },
});
