import type * as english from "./en";

export const tools: typeof english.tools = {
  title: "此对话的工具",
  titleOff: "此对话的工具：已关闭 {count, number} 项",
  web: "联网搜索",
  webText: "搜索网络并阅读网页",
  memory: "记忆",
  memoryText: "使用关于你的记忆，并记住此对话中的内容",
  memoryTemporary: "临时对话始终不使用记忆",
  skills: "技能",
  skillsText: "按技能中的说明完成任务",
  servers: "MCP 服务器",
  manage: "管理 MCP 服务器",
  failed: "工具设置未能更改",
};

export const dictation: typeof english.dictation = {
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
};
