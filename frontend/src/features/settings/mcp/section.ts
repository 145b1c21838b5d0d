import { Cable } from "lucide-react";
import { section } from "../parts/section";

export const mcp = section({
  id: "mcp",
  group: "own",
  icon: Cable,
  load: () => import("."),
  texts: { en: () => import("./en"), zh: () => import("./zh") },
  title: { en: "MCP servers", zh: "MCP 服务器" },
  about: {
    en: "Servers of the Model Context Protocol. They give your agents more tools.",
    zh: "Model Context Protocol 服务器，为你的智能体提供更多工具。",
  },
  words: { en: "connect tools servers connectors integrations", zh: "连接 工具 集成 connect" },
});
