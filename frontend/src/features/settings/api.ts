import type { components } from "@/lib/api-types";
import type { Site } from "@/lib/api";
import { http } from "@/lib/http";

type Schemas = components["schemas"];
export type ModelTest = Schemas["Check"];
export type SystemInfo = Schemas["SystemInfo"];
export type Sandbox = Schemas["SandboxInfo"];
export type Token = Schemas["Token"];
export type Scope = Token["scopes"][number];
export type Person = Schemas["UserRecord"];

export const system = () => http.get<SystemInfo>("/api/system");

/** Names may hold slashes, which are part of the path. */
export const testModel = (name: string) =>
  http.post<ModelTest>(`/api/models/${name.split("/").map(encodeURIComponent).join("/")}/test`);

export type Connection = Schemas["Connection"];
export type Store = Schemas["GivenConnection"]["store"];
/** Nothing that is given is shown again: without a key the one that is kept counts. */
export interface Trial {
  key?: string;
  base_url?: string;
  models: string[];
}
const connectionPath = (id: string) => `/api/connections/${encodeURIComponent(id)}`;
export const connections = () => http.get<Schemas["Connections"]>("/api/connections");
export const reachedModels = async (id: string, trial: Trial) =>
  (await http.post<Schemas["ReachedModels"]>(`${connectionPath(id)}/models`, trial)).models;
export const testConnection = (id: string, trial: Trial) =>
  http.post<ModelTest>(`${connectionPath(id)}/test`, trial);
export const connect = (id: string, trial: Trial, store: Store) =>
  http.put<Connection>(connectionPath(id), { ...trial, store });
export const disconnect = (id: string) => http.delete(connectionPath(id));

export const deleteAccount = (password: string) => http.post("/api/v1/auth/delete-account", { password });

export const tokens = async () => (await http.get<Schemas["Tokens"]>("/api/v1/auth/tokens")).tokens;
export const createToken = (body: { name: string; scopes: Scope[]; expires_in_days: number | null }) =>
  http.post<Schemas["CreatedToken"]>("/api/v1/auth/tokens", body);
export const revokeToken = (id: string) => http.delete(`/api/v1/auth/tokens/${encodeURIComponent(id)}`);

export type Grant = Schemas["GrantView"];
export const grants = async () => (await http.get<Schemas["Grants"]>("/api/approvals/grants")).grants;
/** Titles of threads, by id; those that have none, or are gone, are left out. */
export async function titlesOf(ids: readonly string[]): Promise<Record<string, string>> {
  const body = { ids, select: ["thread_id", "values.title"], limit: Math.max(1, ids.length) };
  const found = await http.post<Schemas["FoundThread"][]>("/api/threads/search", body);
  return Object.fromEntries(
    found.flatMap(({ thread_id: id, values }) =>
      id && typeof values?.title === "string" ? [[id, values.title]] : [],
    ),
  );
}
export const revokeGrant = (id: string) => http.delete(`/api/approvals/grants/${encodeURIComponent(id)}`);

const userPath = (id: string) => `/api/v1/users/${encodeURIComponent(id)}`;
export const users = async () =>
  (await http.get<Schemas["Users"]>("/api/v1/users", { query: { limit: 1000 } })).users;
export const addUser = (email: string) => http.post<Schemas["CreatedUser"]>("/api/v1/users", { email });
export const setRole = (id: string, role: Person["system_role"]) =>
  http.patch(userPath(id), { system_role: role });
export const setSuspended = (id: string, suspended: boolean) => http.patch(userPath(id), { suspended });
export const changeSite = (changes: Partial<Site>) => http.patch<Site>("/api/v1/site", changes);
export const resetPassword = (id: string) =>
  http.post<Schemas["NewPassword"]>(`${userPath(id)}/reset-password`);
export const deleteUser = (id: string) => http.delete(userPath(id));
