// Bundles each page into a folder of its own: node build.mjs OUT.
import { mkdirSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { build } from "esbuild";

// Agent Chat UI as `npx create-agent-chat-app` writes it, with the client that it asks for.
const AGENT_CHAT = resolve("node_modules/create-agent-chat-app/templates/vite/src");

const PAGES = {
  use_stream: { entryPoints: ["use_stream.jsx"] },
  react: { entryPoints: ["react.jsx"] },
  agent_chat: { entryPoints: [`${AGENT_CHAT}/main.tsx`], alias: { "@": AGENT_CHAT, "@langchain/langgraph-sdk": "langgraph-sdk-0.0" } },
  deep_agents: { entryPoints: ["deep_agents.jsx"] },
  assistant_ui: { entryPoints: ["assistant_ui.jsx"] },
};

const [out] = process.argv.slice(2);
for (const [name, options] of Object.entries(PAGES)) {
  const folder = join(out, name);
  mkdirSync(folder, { recursive: true });
  await build({
    bundle: true,
    format: "esm",
    jsx: "automatic",
    logLevel: "warning",
    outfile: join(folder, "page.js"),
    loader: { ".css": "empty" },
    ...options,
    define: { "import.meta.env": "{}", "process.env.NODE_ENV": '"production"', "process.env.NEXT_PUBLIC_LANGSMITH_API_KEY": '""' },
  });
  writeFileSync(join(folder, "index.html"), '<!doctype html><meta charset="utf-8"><div id="root"></div><script type="module" src="page.js"></script>\n');
}
