import type { components } from "@/lib/api-types";
import { http } from "@/lib/http";

type Schemas = components["schemas"];
export type ModelTest = Schemas["Check"];

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
