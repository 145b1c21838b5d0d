// Bundles each page into a folder of its own: node build.mjs OUT.
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { build } from "esbuild";

const PAGES = {
  use_stream: { entryPoints: ["use_stream.jsx"] },
  react: { entryPoints: ["react.jsx"] },
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
    define: { "process.env.NODE_ENV": '"production"', ...options.define },
  });
  writeFileSync(join(folder, "index.html"), '<!doctype html><meta charset="utf-8"><div id="root"></div><script type="module" src="page.js"></script>\n');
}
