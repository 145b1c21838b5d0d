import { Bell } from "lucide-react";
import { section } from "../parts/section";

export const notifications = section({
  id: "notifications",
  group: "personal",
  icon: Bell,
  load: () => import("."),
  texts: { en: () => import("./en"), zh: () => import("./zh") },
  title: { en: "Notifications", zh: "通知" },
  about: {
    en: "Get notified when a task is done. Saved on this device.",
    zh: "无需守候，任务完成时提醒你。仅保存在此设备上。",
  },
});
