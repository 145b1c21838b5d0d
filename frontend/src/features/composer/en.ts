export const tools = {
  title: "Tools for this chat",
  titleOff: "Tools for this chat: {count, number} off",
  web: "Web search",
  webText: "Search the web and read pages",
  memory: "Memory",
  memoryText: "Use what DeerFlow remembers about you, and learn from this chat",
  memoryTemporary: "Always off in a temporary chat",
  skills: "Skills",
  skillsText: "Work by the instructions of your skills",
  servers: "MCP servers",
  manage: "Manage MCP servers",
  failed: "Couldn’t change the tools",
};

export const dictation = {
  start: "Dictate",
  finish: "Finish dictation",
  cancel: "Discard dictation",
  recording: "Recording",
  writing: "Writing it down…",
  nothing: "Nothing was heard",
  nothingText: "Check that the right microphone is chosen and not muted.",
  denied: "Your browser blocks the microphone",
  deniedText: "Allow it in your browser’s site settings (the icon next to the address), then try again.",
  none: "No microphone found",
  noneText: "Connect one, then try again.",
  failed: "Couldn’t turn your speech into text",
  failedBrowser: "Your browser’s speech recognition doesn’t work here",
  failedBrowserText: "It may need the internet, or not support this language.",
  again: "Try again",
};

declare module "@/i18n" {
  interface Messages {
    tools: typeof tools;
    dictation: typeof dictation;
  }
}
