/** Names of the sections of the settings, which the whole page knows; what is in them comes with them. */
export const sections = {
  account: "Account",
  tokens: "API tokens",
  approvals: "Approvals",
  appearance: "Appearance",
  notifications: "Notifications",
  models: "Models",
  sandbox: "Sandbox",
  users: "People",
  about: "About",
  instructions: "Instructions",
  memory: "Memory",
  skills: "Skills",
  agents: "Agents",
  usage: "Usage",
  mcp: "MCP servers",
  channels: "Channels",
};
