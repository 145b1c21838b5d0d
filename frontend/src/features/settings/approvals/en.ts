export const approvals = {
  none: "No saved approvals",
  noneText: "When a call needs your approval, you can allow that tool for one chat or always.",
  inChat: "In one chat",
  inChats: "In single chats",
  everywhere: "In all your chats",
  everyCall: "every call",
  onlyLike: "only like: {pattern}",
  anyValue: "any",
  mayReach: "This chat may reach {host}",
  expired: "expired",
  expiredText: "It held for a name, not for what the tool does. Give it again when you are asked.",
  given: "allowed {when}",
  revoke: "Revoke",
  revokeOf: "Revoke: {name}",
  revoked: "Revoked. You’ll be asked again.",
};

declare module "@/i18n" {
  interface Messages {
    approvals: typeof approvals;
  }
}
