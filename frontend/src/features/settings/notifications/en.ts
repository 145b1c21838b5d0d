export const notifications = {
  enabled: "Notify me",
  enabledText: "When a task finishes, fails or needs you while you’re elsewhere.",
  denied: "Your browser blocks notifications from this page.",
  deniedText: "Allow them in your browser’s site settings (the icon next to the address), then come back.",
  unsupported: "This browser can’t show notifications from this page.",
  insecure: "Browsers only show notifications for https pages or localhost.",
  test: "Send a test",
  testText: "Shows one now.",
  testTitle: "DeerFlow",
  testBody: "This is what you’ll see when a task is done.",
  sent: "Sent. If nothing appears, your system may be set to “do not disturb”.",
};

declare module "@/i18n" {
  interface Messages {
    notifications: typeof notifications;
  }
}
