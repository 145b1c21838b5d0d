import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { expect, test } from "vitest";

type Graph = Map<string, Set<string>>;

const SRC = import.meta.dirname;
const MODULES = readdirSync(SRC, { recursive: true, encoding: "utf8" }).filter((file) =>
  /\.tsx?$/.test(file),
);

/** Names of the files of ours that a module imports, types and what comes late included. */
function importsOf(module: string): string[] {
  const code = readFileSync(join(SRC, module), "utf8");
  const found = code.matchAll(
    /^(?:import|export)\b[^;"]*?from "([^"]+)"|^import "([^"]+)"|\bimport\("([^"]+)"\)/gm,
  );
  return [...found].flatMap(([, named, bare, late]) => {
    const target = (named ?? bare ?? late)!;
    if (!/^(@\/|\.)/.test(target)) return [];
    const path = target.startsWith("@/") ? target.slice(2) : join(dirname(module), target);
    const file = ["", ".ts", ".tsx", "/index.ts", "/index.tsx"].find((end) => MODULES.includes(path + end));
    if (file === undefined && !existsSync(join(SRC, path))) throw new Error(`${module} imports ${target}`);
    return file === undefined ? [] : [path + file];
  });
}

/** `features/chat`, `features/settings/mcp`, `ui`; "" for what lies beside the folders. */
const folderOf = (module: string) =>
  /^features\/settings\/[^/]+(?=\/)|^features\/[^/]+|^[^/]+(?=\/)/.exec(module)?.[0] ?? "";

/** The first way that leads back to where it began. */
function circleIn(graph: Graph): string[] | null {
  const done = new Set<string>();
  const walk = (node: string, way: string[]): string[] | null => {
    if (way.includes(node)) return [...way.slice(way.indexOf(node)), node];
    if (done.has(node)) return null;
    for (const next of graph.get(node) ?? []) {
      const circle = walk(next, [...way, node]);
      if (circle) return circle;
    }
    done.add(node);
    return null;
  };
  for (const node of graph.keys()) {
    const circle = walk(node, []);
    if (circle) return circle;
  }
  return null;
}

const modules: Graph = new Map(MODULES.map((module) => [module, new Set(importsOf(module))]));

test("no modules import each other in a circle", () => {
  expect(circleIn(modules)).toBeNull();
});

test("no folders import each other in a circle", () => {
  const folders: Graph = new Map();
  for (const [module, targets] of modules)
    for (const target of targets) {
      const [from, to] = [folderOf(module), folderOf(target)];
      if (from !== to && from !== "") folders.set(from, (folders.get(from) ?? new Set()).add(to));
    }
  expect(circleIn(folders)).toBeNull();
});

test("a circle is found", () => {
  const graph = new Map([
    ["a", new Set(["b"])],
    ["b", new Set(["c", "d"])],
    ["c", new Set<string>()],
    ["d", new Set(["b"])],
  ]);
  expect(circleIn(graph)).toEqual(["b", "d", "b"]);
  expect(folderOf("features/settings/mcp/api.ts")).toBe("features/settings/mcp");
  expect(folderOf("features/settings/nav.ts")).toBe("features/settings");
  expect(folderOf("ui/button.tsx")).toBe("ui");
});

test("comments are plain words", () => {
  const comments = MODULES.filter((module) => module !== "lib/api-types.ts").flatMap((module) =>
    [
      ...readFileSync(join(SRC, module), "utf8").matchAll(/\/\*\*\s*([^]*?)\*\/|(?<![:"'`/\\])\/\/ (.*)/g),
    ].map(([, doc, line]) => ({ module, doc, text: (doc ?? line)!.replace(/`[^`]*`/g, "") })),
  );
  expect(comments.length).toBeGreaterThan(1000);
  expect(
    comments.filter(({ doc }) => /^(What|Which|Whom?|Whose|Where|How|Whether)\b/.test(doc ?? "")),
  ).toEqual([]);
  const listed = /\b(told|said|heard|anew|begun|nobody|whoever|heed)\b/i;
  expect(comments.filter(({ text }) => listed.test(text)).length).toBeLessThan(10);
});
