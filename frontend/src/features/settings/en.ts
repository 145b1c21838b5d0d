export const settings = {
  title: "Settings",
  backToChat: "Back to chat",
  allSettings: "All settings",
  nav: "Sections",
  group: { personal: "You", own: "Your agents", server: "This server" },
  editor: {
    view: "View of {name}",
    write: "Write",
    preview: "Preview",
    changes: "Changes",
    empty: "Nothing written yet.",
    length: "{n, number} of {limit, number} characters",
    saved: "Saved. Takes effect with your next message.",
  },
  history: {
    byYou: "by you",
    byAgent: "by an agent",
    chat: "from a chat",
  },
};

declare module "@/i18n" {
  interface Messages {
    settings: typeof settings;
  }
}
