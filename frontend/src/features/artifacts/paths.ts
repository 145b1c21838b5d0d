import { ROOT } from "@/lib/files";

const OUTPUTS = `${ROOT}outputs/`;

/** "reports/2026", "workspace/src"; empty for what lies in the outputs themselves. */
export function folderOf(path: string): string {
  const below = path.startsWith(OUTPUTS) ? path.slice(OUTPUTS.length) : path.replace(ROOT, "");
  return below.split("/").slice(0, -1).join("/");
}
