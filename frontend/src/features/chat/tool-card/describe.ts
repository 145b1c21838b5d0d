/** Row of a tool call: a verb, its object, and an icon. */
import {
  BookOpen,
  CircleHelp,
  FilePen,
  FilePlus,
  Files,
  FolderTree,
  Globe,
  Image as ImageIcon,
  ListTodo,
  type LucideIcon,
  Network,
  Search,
  SquareTerminal,
  TextSearch,
  Wrench,
} from "lucide-react";
import { nameOf, shortPath } from "@/lib/files";
import { hostOf } from "@/lib/web";
import type { ToolCall } from "../thread/message";

/** Keys of the texts `chat.doing.*` and `chat.done.*`. */
export type Deed =
  | "run"
  | "readProcess"
  | "killProcess"
  | "read"
  | "list"
  | "find"
  | "search"
  | "write"
  | "append"
  | "edit"
  | "web"
  | "images"
  | "fetch"
  | "look"
  | "plan"
  | "present"
  | "ask"
  | "task"
  | "use";

export interface Description {
  icon: LucideIcon;
  deed: Deed;
  /** Object of the call in a few characters: a name, a pattern, an address. */
  subject: string;
  /** The agent's own words on why, where they say more than the verb. */
  why: string;
}

const TOOLS: Record<string, [LucideIcon, Deed, (args: Args) => string]> = {
  bash: [SquareTerminal, "run", (args) => firstLine(args.text("command"))],
  read_process: [SquareTerminal, "readProcess", (args) => args.text("process_id")],
  kill_process: [SquareTerminal, "killProcess", (args) => args.text("process_id")],
  read_file: [BookOpen, "read", (args) => nameOf(args.text("path")) + lines(args)],
  ls: [FolderTree, "list", (args) => shortPath(args.text("path"))],
  glob: [Search, "find", (args) => args.text("pattern")],
  grep: [TextSearch, "search", (args) => args.text("pattern")],
  write_file: [FilePlus, "write", (args) => nameOf(args.text("path"))],
  str_replace: [FilePen, "edit", (args) => nameOf(args.text("path"))],
  web_search: [Globe, "web", (args) => args.text("query")],
  image_search: [Globe, "images", (args) => args.text("query")],
  web_fetch: [Globe, "fetch", (args) => hostOf(args.text("url"))],
  web_capture: [Globe, "fetch", (args) => hostOf(args.text("url"))],
  view_image: [ImageIcon, "look", (args) => nameOf(args.text("image_path"))],
  write_todos: [ListTodo, "plan", () => ""],
  present_files: [Files, "present", (args) => args.list("filepaths").map(nameOf).join(", ")],
  ask_clarification: [CircleHelp, "ask", () => ""],
  task: [Network, "task", (args) => args.text("description") || firstLine(args.text("prompt"))],
};

export function describe(call: ToolCall): Description {
  const args = new Args(call.args);
  const why = call.name === "task" ? "" : args.text("description");
  const [icon, deed, subject] = TOOLS[call.name] ?? [Wrench, "use" as const, () => humanName(call.name)];
  const isAppended = deed === "write" && call.args["append"] === true;
  return { icon, deed: isAppended ? "append" : deed, subject: subject(args), why };
}

/** Arguments as far as they have arrived: any of them may be missing or of another kind. */
export class Args {
  constructor(private readonly args: Record<string, unknown>) {}

  text(name: string): string {
    const value = this.args[name];
    return typeof value === "string" ? value : typeof value === "number" ? String(value) : "";
  }

  list(name: string): string[] {
    const value = this.args[name];
    return Array.isArray(value) ? value.filter((one): one is string => typeof one === "string") : [];
  }
}

const firstLine = (text: string) => text.trimStart().split("\n", 1)[0]!.slice(0, 200);

function lines(args: Args): string {
  const [from, to] = [args.text("start_line"), args.text("end_line")];
  return from || to ? `:${from || 1}${to ? `–${to}` : "–"}` : "";
}

/** `my_server__do_this` → "do this (my server)". */
function humanName(name: string): string {
  const [server, tool] = name.includes("__") ? name.split("__", 2) : ["", name];
  const words = (text: string) => text.replaceAll("_", " ").trim();
  return server ? `${words(tool!)} (${words(server)})` : words(name);
}
