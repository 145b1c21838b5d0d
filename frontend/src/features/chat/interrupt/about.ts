/** The server's description of a call that waits, and the headline that follows from it. Pure. */
import { nameOf } from "@/lib/files";
import { marked } from "@/lib/marks";
import { hostOf } from "@/lib/web";
import { Args } from "../tool-card/describe";
import type { WaitingCall } from "./decisions";

interface Effect {
  changes: boolean;
  /** It changes what stays after the chat. */
  lasts: boolean;
  /** The host or server to which something is sent; empty: nothing is. */
  destination: string;
  server: string;
}

/** A tool as its server defined it. */
export interface Definition {
  description?: string;
  arguments?: string[];
}

export interface About {
  /** Null where a program of the operator's asks. */
  effect: Effect | null;
  asker: { agent: string; subagent: string } | null;
  changed: { before: Definition; now: Definition } | null;
  /** Arguments that say nothing of what the call does. */
  cosmetic: readonly string[];
}

export function aboutOf(value: unknown): About {
  const given = (typeof value === "object" && value ? value : {}) as Record<string, unknown>;
  const part = <T>(name: string) => {
    const found = given[name];
    return typeof found === "object" && found !== null && !Array.isArray(found) ? (found as T) : null;
  };
  const asker = part<Partial<NonNullable<About["asker"]>>>("asked_by");
  const changed = part<Partial<NonNullable<About["changed"]>>>("changed");
  return {
    effect: part<Effect>("effect"),
    asker: asker && { agent: asker.agent ?? "", subagent: asker.subagent ?? "" },
    changed: changed && { before: changed.before ?? {}, now: changed.now ?? {} },
    cosmetic: Array.isArray(given["cosmetic"]) ? (given["cosmetic"] as string[]) : ["description"],
  };
}

/** The question whether commands may reach a host; it is of no tool. */
export const isNetwork = (call: WaitingCall) =>
  call.name === "network" && call.id === null && typeof call.args["host"] === "string";

/** Once allowed, the chat may send there without a question. */
export const opensDestination = ({ effect }: About) =>
  effect && !effect.changes && effect.destination ? effect.destination : "";

type What =
  | "network"
  | "packages"
  | "agent"
  | "setup"
  | "remember"
  | "forget"
  | "lasts"
  | "run"
  | "write"
  | "append"
  | "edit"
  | "fetch"
  | "server"
  | "use";

export interface Headline {
  what: What;
  does: "nothing" | "changes" | "sends" | "both";
  /** Safe to be shown. */
  name: string;
  place: string;
  destination: string;
}

const LASTING: Record<string, What> = {
  update_agent: "agent",
  setup_agent: "setup",
  memory_save: "remember",
  memory_forget: "forget",
};
const OWN: Record<string, [What, (args: Args) => string]> = {
  bash: ["run", () => ""],
  str_replace: ["edit", (args) => nameOf(args.text("path"))],
  web_fetch: ["fetch", (args) => hostOf(args.text("url"))],
  web_capture: ["fetch", (args) => hostOf(args.text("url"))],
};

/** In our words alone: nothing that the model wrote is in it but names. */
export function headlineOf(call: WaitingCall, { effect }: About): Headline {
  const args = new Args(call.args);
  const server = effect?.server ?? "";
  const headline = (what: What, name = ""): Headline => ({
    what,
    name: marked(name),
    place: marked(server),
    does: doesOf(effect),
    destination: marked(effect?.destination ?? ""),
  });
  if (isNetwork(call)) {
    const what = call.args["packages"] === true ? "packages" : "network";
    return { ...headline(what, args.text("host")), does: "nothing" };
  }
  if (server) return headline("server", toolOf(call.name, server));
  if (effect?.lasts) return headline(LASTING[call.name] ?? "lasts", call.name);
  if (call.name === "write_file")
    return headline(call.args["append"] === true ? "append" : "write", nameOf(args.text("path")));
  const [what, nameIn] = OWN[call.name] ?? ["use" as const, () => call.name];
  return headline(what, nameIn(args));
}

function doesOf(effect: Effect | null): Headline["does"] {
  if (!effect) return "nothing";
  const sends = effect.destination !== "";
  if (effect.changes) return sends ? "both" : "changes";
  return sends ? "sends" : "nothing";
}

/** `my_server_do_this` of `my_server` → "do_this". */
const toolOf = (name: string, server: string) =>
  name.startsWith(`${server}_`) ? name.slice(server.length).replace(/^_+/, "") || name : name;

/** A value as it is shown. */
export const asText = (value: unknown): string =>
  typeof value === "string" ? value : JSON.stringify(value, null, 2);
