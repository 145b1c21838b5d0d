import { useQueryClient } from "@tanstack/react-query";
import type { components } from "@/lib/api-types";
import { http } from "@/lib/http";
import type { Entry } from "./entry";

type Schemas = components["schemas"];
export type Server = Schemas["McpServerState"];
export type Tool = Schemas["McpTool"];
export type Change = Schemas["McpChange"];
export type Trial = Schemas["McpTrial"];
/** By name, in the order of the file. */
export type Entries = Record<string, Entry>;

export const KEYS = { all: ["mcp"], servers: ["mcp", "servers"], entries: ["mcp", "entries"] } as const;

const serverPath = (name: string) => `/api/mcp/servers/${encodeURIComponent(name)}`;

export const servers = async () => (await http.get<Schemas["McpServerStates"]>("/api/mcp/servers")).servers;
/** Secrets are marks; a mark that is sent back keeps its secret. */
export const entries = async () => (await http.get<Schemas["McpEntries"]>("/api/mcp/config")).mcp_servers;
const putEntries = async (all: Entries) =>
  (await http.put<Schemas["McpEntries"]>("/api/mcp/config", { mcp_servers: all })).mcp_servers;
export const testEntry = (name: string, entry: Entry) => http.post<Trial>("/api/mcp/test", { name, entry });
export const restart = (name: string) => http.post<Server>(`${serverPath(name)}/restart`);
export const log = async (name: string) =>
  (await http.get<Schemas["McpLog"]>(`${serverPath(name)}/log`)).lines;
export const changes = async (name: string) =>
  (await http.get<Schemas["McpChanges"]>(`${serverPath(name)}/changes`)).changes;
/** Accepts what was looked at, and nothing that came meanwhile. */
export const accept = async (name: string, digests: string[]) =>
  (await http.post<Schemas["McpChanges"]>(`${serverPath(name)}/accept`, { digests })).changes;
export const connect = async (name: string) =>
  (await http.post<Schemas["McpAuthorizationUrl"]>(`${serverPath(name)}/connect`)).authorization_url;
export const disconnect = (name: string) => http.delete(`${serverPath(name)}/connect`);

/** Changes the entries as they are on the server now, not as they were when the page was loaded. */
export function useChange() {
  const queries = useQueryClient();
  return async (change: (all: Entries) => Entries) => {
    queries.setQueryData(KEYS.entries, await putEntries(change(await entries())));
    await queries.invalidateQueries({ queryKey: KEYS.servers });
  };
}
