import type * as en from "../en/voice";

export const voice: typeof en.voice = {
  read: {
    start: "朗读",
    stop: "停止朗读",
    failed: "无法朗读",
    failedText: "浏览器没有适合该语言的语音。可在系统设置中添加语音。",
  },
  dictate: {
    start: "语音输入",
    finish: "结束语音输入",
    cancel: "放弃语音输入",
    recording: "正在录音",
    writing: "正在转成文字…",
    nothing: "没有听到声音",
    nothingText: "请检查是否选对了麦克风，以及麦克风是否已静音。",
    denied: "浏览器禁止使用麦克风",
    deniedText: "请在浏览器的网站设置（地址旁的图标）中允许使用麦克风，然后重试。",
    none: "未找到麦克风",
    noneText: "请连接麦克风后重试。",
    failed: "无法将语音转成文字",
    failedBrowser: "浏览器的语音识别无法使用",
    failedBrowserText: "它可能需要联网，或不支持该语言。",
    again: "重试",
  },
};
