// Puts the exported page where the gateway serves it from, compressed beside each file.
//   node scripts/publish.mjs TARGET
import { cpSync, readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { extname, join } from "node:path";
import { brotliCompressSync, constants, gzipSync } from "node:zlib";

const TEXTS = new Set([".html", ".js", ".css", ".svg", ".txt", ".json", ".webmanifest", ".map", ".wasm"]);
const WORTH_IT = 1024;
const target = process.argv[2];
const fresh = `${target}.new`;

rmSync(fresh, { recursive: true, force: true });
cpSync("out", fresh, { recursive: true });
for (const entry of readdirSync(fresh, { recursive: true })) {
  const file = join(fresh, entry);
  if (!TEXTS.has(extname(file)) || !statSync(file).isFile() || statSync(file).size < WORTH_IT) continue;
  const content = readFileSync(file);
  const brotli = { params: { [constants.BROTLI_PARAM_QUALITY]: 9 } };
  writeFileSync(`${file}.br`, brotliCompressSync(content, brotli));
  writeFileSync(`${file}.gz`, gzipSync(content, { level: 9 }));
}
rmSync(target, { recursive: true, force: true });
renameSync(fresh, target);
