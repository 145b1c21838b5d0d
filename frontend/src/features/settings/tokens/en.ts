export const tokens = {
  none: "No tokens yet",
  noneText: "A token lets a script or another program use DeerFlow over HTTP.",
  create: "New token",
  name: "Name",
  namePlaceholder: "Nightly report",
  scopes: "Permissions",
  scope: { read: "Read", write: "Write", admin: "Admin" },
  scopeText: {
    read: "View and search your chats and files",
    write: "Start runs, upload and edit files",
    admin: "Everything an administrator can do",
  },
  expiry: "Expires after",
  days: "{n, plural, one {# day} other {# days}}",
  year: "1 year",
  forever: "Never",
  created: "Your new token",
  createdText: "Copy it now. You won’t see it again.",
  copyToken: "Copy token",
  copied: "Done",
  token: "Token",
  usage: "Try it",
  since: "created {when}",
  until: "valid until {date}",
  untilForever: "never expires",
  expired: "expired {date}",
  used: "last used {when}",
  unused: "never used",
  revoke: "Revoke",
  revokeTitle: "Revoke “{name}”?",
  revokeText: "Programs using it will stop working. This can’t be undone.",
  revoked: "Token revoked",
  local: "Tokens belong to accounts, and this server doesn’t use sign-in.",
};

declare module "@/i18n" {
  interface Messages {
    tokens: typeof tokens;
  }
}
