/** Placeholder of a secret that the server keeps. */
export const MARK = "********";

export type Policy = "allow" | "ask" | "deny";

export interface OAuth {
  grant_type?: string | null;
  token_url?: string | null;
  client_id?: string | null;
  client_secret?: string | null;
  scope?: string | null;
  [more: string]: unknown;
}

/** A server as `extensions_config.json` describes it. Keys that are not known here are kept. */
export interface Entry {
  enabled?: boolean;
  type?: string;
  command?: string | null;
  args?: string[];
  env?: Record<string, string>;
  url?: string | null;
  headers?: Record<string, string>;
  oauth?: OAuth | null;
  description?: string;
  isolation?: string;
  network?: string | { mode?: string };
  mounts?: unknown[];
  tools?: Record<string, { enabled?: boolean; policy?: Policy | null }>;
  trusted?: boolean;
  [more: string]: unknown;
}

/** Reason for which a text holds no servers. `name`: the server concerned; `detail`: the parser's message. */
export interface Problem {
  code: "notJson" | "noServers" | "nameless" | "notAnEntry" | "noWay" | "badName";
  name?: string;
  detail?: string;
}

const WRAPPERS = ["mcpServers", "mcp_servers", "servers"];
const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);
const isEntry = (value: Record<string, unknown>) =>
  ["command", "url", "serverUrl", "httpUrl"].some((key) => typeof value[key] === "string");

/** A copy that lacks these keys. */
export const without = <T extends object>(value: T, ...keys: (keyof T)[]) =>
  Object.fromEntries(Object.entries(value).filter(([key]) => !keys.includes(key as keyof T))) as Partial<T>;

/** Names are part of addresses. */
export const isName = (name: string) => /^[^\s/\\?#%]{1,64}$/.test(name);

/** The servers in a text as other programs keep them: under `mcpServers`, under `servers`, or bare. */
export function parseServers(text: string): { servers: Record<string, Entry> } | { problem: Problem } {
  let document: unknown;
  try {
    document = JSON.parse(text);
  } catch (error) {
    return { problem: { code: "notJson", detail: (error as Error).message } };
  }
  if (!isObject(document)) return { problem: { code: "noServers" } };
  const inner = WRAPPERS.map((key) => (document as Record<string, unknown>)[key]).find(isObject) ?? document;
  if (isEntry(inner)) return { problem: { code: "nameless" } };
  const all = Object.entries(inner);
  if (all.length === 0) return { problem: { code: "noServers" } };
  const found: Record<string, Entry> = {};
  for (const [name, value] of all) {
    if (!isName(name)) return { problem: { code: "badName", name } };
    if (!isObject(value)) return { problem: { code: "notAnEntry", name } };
    if (!isEntry(value)) return { problem: { code: "noWay", name } };
    found[name] = asOurs(value);
  }
  return { servers: found };
}

/**
 * Our form of an entry: others name the address, the type and the switch differently, or omit the type. A text
 * never makes a server trusted: that is the form's switch, beside its explanation.
 */
function asOurs({
  serverUrl,
  httpUrl,
  disabled,
  transport,
  trusted: _,
  ...entry
}: Record<string, unknown>): Entry {
  const ours = entry as Entry;
  const url = ours.url ?? serverUrl ?? httpUrl;
  const type = String(ours.type ?? transport ?? (ours.command ? "stdio" : "http"));
  return {
    ...ours,
    ...(typeof url === "string" ? { url } : {}),
    ...(typeof disabled === "boolean" ? { enabled: !disabled } : {}),
    type: /^streamable[-_]?http$/i.test(type) ? "http" : type,
  };
}

/** An entry as text, without what it does not say. */
export function toText(name: string, entry: Entry): string {
  const said = Object.entries(entry).filter(
    ([key, value]) =>
      value !== null &&
      value !== "" &&
      key !== "trusted" &&
      !(key === "enabled" && value === true) &&
      !(typeof value === "object" && Object.keys(value).length === 0 && key !== "oauth"),
  );
  return JSON.stringify({ mcpServers: { [name]: Object.fromEntries(said) } }, null, 2);
}

/** The entry with what holds for one tool; the usual is not written. */
export function withTool(
  entry: Entry,
  tool: string,
  set: { enabled: boolean; policy: Policy | null },
): Entry {
  const others = without(entry.tools ?? {}, tool) as NonNullable<Entry["tools"]>;
  const own = {
    ...(set.enabled ? {} : { enabled: false }),
    ...(set.policy ? { policy: set.policy } : {}),
  };
  return { ...entry, tools: Object.keys(own).length > 0 ? { ...others, [tool]: own } : others };
}

export const isProgram = (entry: Entry) => (entry.type ?? "stdio") === "stdio";

/** Reach of an entry's program: its network, and whether it runs without a sandbox. */
export function reachOf(entry: Entry) {
  const { network } = entry;
  return {
    onHost: entry.isolation === "host",
    network: (typeof network === "string" ? network : network?.mode) ?? "internet",
    mounts: entry.mounts?.length ?? 0,
  };
}
