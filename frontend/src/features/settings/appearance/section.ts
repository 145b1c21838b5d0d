import { Palette } from "lucide-react";
import { section } from "../parts/section";

export const appearance = section({
  id: "appearance",
  group: "personal",
  icon: Palette,
  load: () => import("."),
  texts: { en: () => import("./en"), zh: () => import("./zh") },
  title: { en: "Appearance", zh: "外观" },
  about: { en: "Saved on this device.", zh: "仅保存在此设备上。" },
  words: {
    en: "theme language color font voice dictation microphone read aloud",
    zh: "主题 语言 字体 语音 听写 麦克风 朗读 theme voice",
  },
});
