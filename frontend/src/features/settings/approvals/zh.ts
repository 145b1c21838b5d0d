import type { approvals as english } from "./en";

export const approvals: typeof english = {
  none: "没有预先允许的工具",
  noneText: "当某次调用需要你批准时，可以在此对话中或始终允许该工具。",
  inChat: "仅一个对话",
  inChats: "单个对话中",
  everywhere: "你的所有对话",
  everyCall: "所有调用",
  onlyLike: "仅限类似：{pattern}",
  anyValue: "任意",
  mayReach: "此对话可以访问 {host}",
  expired: "已失效",
  expiredText: "它只认名称，不认工具的实际作用。下次询问时请重新授予。",
  given: "{when}允许",
  revoke: "撤销",
  revokeOf: "撤销：{name}",
  revoked: "已撤销，之后会再次询问你。",
};
