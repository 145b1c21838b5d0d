export const appearance = {
  theme: "Theme",
  system: "System",
  light: "Light",
  dark: "Dark",
  language: "Language",
  languageText: "For the interface. The agent answers in the language you write in.",
  dictation: {
    title: "Dictation by the browser",
    text: "Shows a microphone in the message field. Many browsers send what you say to their maker to turn it into text.",
    server: "This server turns speech into text itself, so the browser’s recognition isn’t used.",
    unsupported: "This browser has no speech recognition.",
    insecure: "Browsers only allow the microphone on https pages or localhost.",
  },
};

declare module "@/i18n" {
  interface Messages {
    appearance: typeof appearance;
  }
}
