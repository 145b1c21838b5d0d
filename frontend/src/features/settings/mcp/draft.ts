import { isName, isProgram, without, type Entry, type OAuth } from "./entry";

export interface Pair {
  id: number;
  name: string;
  value: string;
}

export const ACCESS = ["none", "own", "client"] as const;
/** `other`: as it stands in the file, which the form does not show. */
export type Access = (typeof ACCESS)[number] | "other";

/** Content of the form. */
export interface Draft {
  name: string;
  description: string;
  trusted: boolean;
  type: "stdio" | "http" | "sse";
  command: string;
  /** One a line. */
  args: string;
  env: Pair[];
  url: string;
  headers: Pair[];
  access: Access;
  tokenUrl: string;
  clientId: string;
  clientSecret: string;
  scope: string;
}

let last = 0;
export const newPair = (name = "", value = ""): Pair => ({ id: (last += 1), name, value });
const pairsOf = (values: Record<string, string> | undefined) =>
  Object.entries(values ?? {}).map(([name, value]) => newPair(name, value));
const valuesOf = (pairs: Pair[]) =>
  Object.fromEntries(pairs.filter(({ name }) => name.trim()).map(({ name, value }) => [name.trim(), value]));

export function draftOf(name: string, entry: Entry): Draft {
  const oauth = entry.oauth ?? {};
  return {
    name,
    description: entry.description ?? "",
    trusted: entry.trusted === true,
    type: isProgram(entry) ? "stdio" : entry.type === "sse" ? "sse" : "http",
    command: entry.command ?? "",
    args: (entry.args ?? []).join("\n"),
    env: pairsOf(entry.env),
    url: entry.url ?? "",
    headers: pairsOf(entry.headers),
    access: accessOf(entry.oauth),
    tokenUrl: oauth.token_url ?? "",
    clientId: oauth.client_id ?? "",
    clientSecret: oauth.client_secret ?? "",
    scope: oauth.scope ?? "",
  };
}

function accessOf(oauth: OAuth | null | undefined): Access {
  if (!oauth || oauth.enabled === false) return "none";
  const grant = oauth.grant_type ?? (oauth.client_id ? "client_credentials" : "authorization_code");
  if (grant === "authorization_code") return "own";
  return grant === "client_credentials" ? "client" : "other";
}

/** The entry that the form describes; what the form does not show stays as it was in `before`. */
export function entryOf(draft: Draft, before: Entry): Entry {
  const kept = without(before, "command", "args", "env", "url", "headers", "oauth", "trusted");
  const trusted = draft.trusted ? { trusted: true } : {};
  const common = { ...kept, ...trusted, type: draft.type, description: draft.description.trim() };
  if (draft.type === "stdio") {
    const args = draft.args.split("\n").filter((line) => line !== "");
    return { ...common, command: draft.command.trim(), args, env: valuesOf(draft.env) };
  }
  return {
    ...common,
    url: draft.url.trim(),
    headers: valuesOf(draft.headers),
    oauth: oauthOf(draft, before.oauth),
  };
}

function oauthOf(draft: Draft, before: OAuth | null | undefined): OAuth | null {
  if (draft.access === "none") return null;
  if (draft.access === "other") return before ?? null;
  const isOwn = draft.access === "own";
  const given = {
    token_url: isOwn ? (before?.token_url ?? "") : draft.tokenUrl,
    client_id: draft.clientId,
    client_secret: draft.clientSecret,
    scope: draft.scope,
  };
  const filled = Object.entries(given).filter(([, value]) => value.trim());
  return {
    ...without(before ?? {}, "token_url", "client_id", "client_secret", "scope"),
    enabled: true,
    grant_type: isOwn ? "authorization_code" : "client_credentials",
    ...Object.fromEntries(filled.map(([key, value]) => [key, value.trim()])),
  };
}

/** True if it can be sent. */
export function isReady(draft: Draft): boolean {
  if (!isName(draft.name.trim())) return false;
  if (draft.type === "stdio") return draft.command.trim() !== "";
  const hasToken =
    draft.access !== "client" || [draft.tokenUrl, draft.clientId, draft.clientSecret].every(Boolean);
  return /^https?:\/\/./i.test(draft.url.trim()) && hasToken;
}
