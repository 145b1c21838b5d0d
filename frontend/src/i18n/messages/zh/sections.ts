import type * as en from "../en/sections";

export const sections: typeof en.sections = {
  account: "账号",
  tokens: "API 令牌",
  approvals: "授权",
  appearance: "外观",
  notifications: "通知",
  models: "模型",
  sandbox: "沙箱",
  users: "成员",
  about: "关于",
  instructions: "自定义指令",
  memory: "记忆",
  skills: "技能",
  agents: "智能体",
  usage: "用量",
  mcp: "MCP 服务器",
  channels: "渠道",
};
