export const account = {
  email: "Email",
  role: "Role",
  roleAdmin: "Administrator",
  roleUser: "Member",
  local: "This server doesn’t use sign-in. Everyone who can reach it shares one local user.",
  localHint: "Accounts are turned off with DEER_FLOW_AUTH_DISABLED.",
  needsSetup: "Someone else set your password. Choose one that only you know.",
  password: "Password",
  passwordHint: "Change your password, and sign out your other devices if you like.",
  changeHint: "You stay signed in on this device.",
  endSessions: "Sign out everywhere else",
  change: "Change password",
  current: "Current password",
  new: "New password",
  changed: "Password changed",
  signOut: "Sign out",
  signOutHint: "On this device.",
  signOutEverywhere: "Sign out everywhere",
  signOutEverywhereHint: "On all devices. API tokens keep working.",
  signOutFailed: "Couldn’t sign out",
  data: "My data",
  export: "Export everything",
  exportHint: "One ZIP with your chats, files, memory, agents and skills.",
  exportButton: "Export",
  delete: "Delete account",
  deleteHint: "Removes your account and everything in it.",
  deleteTitle: "Delete your account?",
  deleteText:
    "Everything that’s yours is deleted for good: chats, files, memory, agents, skills, tokens and connected chat apps. Running tasks and schedules stop. Export what you want to keep first.",
  deleteConfirm: "Delete everything",
};

declare module "@/i18n" {
  interface Messages {
    account: typeof account;
  }
}
