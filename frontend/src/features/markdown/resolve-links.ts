import { resolvePath } from "@/lib/files";
import type { Node } from "./hast";

/**
 * A rehype plugin: links and pictures that lead to files of the thread get their paths, whether they are relative to the
 * file at `path` or begin with `sandbox:`. It runs before what removes unsafe addresses, which would remove these.
 */
export function resolveLinks({ path }: { path: string }) {
  return (tree: Node) => visit(tree, path);
}

function visit(node: Node, path: string) {
  const name = node.tagName === "a" ? "href" : node.tagName === "img" ? "src" : null;
  const address = name && node.properties?.[name];
  if (typeof address === "string") {
    const target = resolvePath(path, address);
    if (target) node.properties![name!] = target.split("/").map(encodeURIComponent).join("/");
  }
  node.children?.forEach((child) => visit(child, path));
}
