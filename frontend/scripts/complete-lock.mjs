// After each `npm install`: makes package-lock.json fit every system and every registry.
// npm leaves out the optional binaries that the registry at hand does not hold, and `npm ci` then calls the lock out of
// sync; they are written in here, without an integrity hash. Addresses of downloads are taken out.
import { readFileSync, writeFileSync } from "node:fs";

const SYSTEMS = [
  "android",
  "darwin",
  "freebsd",
  "linux",
  "netbsd",
  "openbsd",
  "openharmony",
  "sunos",
  "aix",
  "win32",
];
const PROCESSORS = ["arm64", "x64", "ia32", "arm", "riscv64", "ppc64", "s390x", "loong64", "wasm32"];

const lock = JSON.parse(readFileSync("package-lock.json", "utf8"));
const packages = lock.packages;
let added = 0;
for (const [at, entry] of Object.entries(packages)) {
  delete entry.resolved;
  for (const [name, version] of Object.entries(entry.optionalDependencies ?? {})) {
    if (packages[`node_modules/${name}`] || packages[`${at}/node_modules/${name}`]) continue;
    const words = name.split(/[/-]/);
    const os = SYSTEMS.find((system) => words.includes(system));
    const cpu = PROCESSORS.find((processor) => words.includes(processor));
    packages[`node_modules/${name}`] = {
      version: version.replace(/^[\^~]/, ""),
      ...(entry.dev && { dev: true }),
      optional: true,
      ...(os && { os: [os] }),
      ...(cpu && { cpu: [cpu] }),
    };
    added += 1;
  }
}
lock.packages = Object.fromEntries(Object.entries(packages).sort(([one], [other]) => (one < other ? -1 : 1)));
writeFileSync("package-lock.json", JSON.stringify(lock, null, 2) + "\n");
console.log(`${added} optional packages added`);
