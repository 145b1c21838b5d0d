import type { components } from "@/lib/api-types";
import type { Agent } from "@/lib/agents";
import type { FoundThread } from "@/lib/api";
import { http } from "@/lib/http";
import { keys } from "@/lib/keys";

type Schemas = components["schemas"];
export type { Agent };
export type Changes = Partial<Omit<Agent, "name">>;
export type Choices = Schemas["AgentChoices"];

const pathOf = (name: string, rest = "") => `/api/agents/${encodeURIComponent(name)}${rest}`;

/** Most begin like the list's, so that what changes an agent makes them stale with it. */
export const agentKeys = {
  versions: (name: string) => [...keys.agents, name, "versions"],
  chats: (name: string) => [...keys.threads, "agent", name],
  choices: ["agentChoices"],
  profile: ["userProfile"],
};

export const choices = () => http.get<Choices>("/api/agent-choices");
export const isFree = async (name: string) =>
  (await http.get<Schemas["Availability"]>("/api/agents/check", { query: { name } })).available;
export const create = (agent: Pick<Agent, "name" | "display_name" | "description">) =>
  http.post<Agent>("/api/agents", agent);
export const change = (name: string, changes: Changes) => http.put<Agent>(pathOf(name), changes);
export const remove = (name: string) => http.delete(pathOf(name));
export const versions = async (name: string) =>
  (await http.get<Schemas["Versions"]>(pathOf(name, "/versions"))).versions;
export const rollback = (name: string, version: number) =>
  http.post<Agent>(pathOf(name, "/rollback"), { version });

export const profile = async () => (await http.get<Schemas["Profile"]>("/api/user-profile")).content ?? "";
export const writeProfile = (content: string) => http.put("/api/user-profile", { content });

const MOST_CHATS = 50;
export const chats = (name: string) =>
  http.post<FoundThread[]>("/api/threads/search", {
    metadata: { graph_id: name },
    select: ["thread_id", "updated_at", "values.title"],
    limit: MOST_CHATS,
  });
