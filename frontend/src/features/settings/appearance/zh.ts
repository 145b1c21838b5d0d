import type { appearance as english } from "./en";

export const appearance: typeof english = {
  theme: "主题",
  system: "跟随系统",
  light: "浅色",
  dark: "深色",
  language: "语言",
  languageText: "仅影响界面。智能体会使用你书写的语言来回答。",
  dictation: {
    title: "使用浏览器的语音输入",
    text: "在输入框中显示麦克风。许多浏览器会将你说的话发送给浏览器厂商来转成文字。",
    server: "此服务器会自行将语音转成文字，不使用浏览器的语音识别。",
    unsupported: "此浏览器不支持语音识别。",
    insecure: "浏览器仅允许 https 页面或 localhost 使用麦克风。",
  },
};
