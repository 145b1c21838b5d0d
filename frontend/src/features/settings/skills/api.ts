import type { components } from "@/lib/api-types";
import { http, request } from "@/lib/http";
import { keys } from "@/lib/keys";
import type { Skill } from "@/lib/skills";

type Schemas = components["schemas"];
export type { Skill };
export type SkillText = Schemas["SkillText"];
export type SkillFiles = Schemas["SkillFiles"];
export type Finding = Schemas["Finding"];
export type Review = Schemas["Review"];
export type Installed = Schemas["Installed"];
export type SkillChange = Schemas["SkillChange"];
export type Suggestion = Schemas["SkillSuggestion"];

const pathOf = (name: string, rest = "") => `/api/skills/${encodeURIComponent(name)}${rest}`;
const ownPath = (name: string, rest = "") => `/api/skills/custom/${encodeURIComponent(name)}${rest}`;
const filePath = (path: string) => `/files/${path.split("/").map(encodeURIComponent).join("/")}`;

/** All begin like the list's, so that what changes a skill makes them stale with it. */
export const skillKeys = {
  one: (name: string) => [...keys.skills, name],
  files: (name: string) => [...keys.skills, name, "files"],
  file: (name: string, path: string) => [...keys.skills, name, "files", path],
  secrets: (name: string) => [...keys.skills, name, "secrets"],
  history: (name: string) => [...keys.skills, name, "history"],
  suggestions: [...keys.skills, "", "suggestions"],
};

export const skill = (name: string) => http.get<SkillText>(pathOf(name));
export const files = (name: string) => http.get<SkillFiles>(pathOf(name, "/files"));
export const fileText = async (name: string, path: string) =>
  (await http.get<Schemas["FileText"]>(pathOf(name, filePath(path)))).content;
export const setEnabled = (name: string, enabled: boolean) => http.put<Skill>(pathOf(name), { enabled });

/** An installed skill stays off until the person has looked at it. */
export const installArchive = async (archive: File): Promise<Installed> => {
  const headers = { "Content-Type": "application/zip" };
  const sent = { body: archive, headers, query: { enable: false } };
  return (await request("POST", "/api/skills/archive", sent)).json() as Promise<Installed>;
};
export const installFrom = (url: string) =>
  http.post<Installed>("/api/skills/install", { url, enable: false });

export const create = (name: string, content: string) => http.post<SkillText>(ownPath(name), { content });
export const write = (name: string, content: string) => http.put<SkillText>(ownPath(name), { content });
export const remove = (name: string) => http.delete(ownPath(name));
export const history = async (name: string) =>
  (await http.get<{ history: SkillChange[] }>(ownPath(name, "/history"))).history;
export const rollback = (name: string, index: number) =>
  http.post<SkillText>(ownPath(name, "/rollback"), { history_index: index });

export const secrets = (name: string) => http.get<Record<string, boolean>>(pathOf(name, "/secrets"));
export const setSecret = (name: string, secret: string, value: string | null) =>
  http.put<Record<string, boolean>>(pathOf(name, `/secrets/${encodeURIComponent(secret)}`), { value });
/** `digest`: of the skill that the person has looked at. */
export const confirmSecrets = (name: string, digest: string) =>
  http.post<Record<string, boolean>>(pathOf(name, "/secrets/confirm"), { digest });

export const suggestions = async () =>
  (await http.get<{ suggestions: Suggestion[] }>("/api/skills/suggestions")).suggestions;
const suggestionPath = (id: string) => `/api/skills/suggestions/${encodeURIComponent(id)}`;
export const acceptSuggestion = (id: string) => http.post(suggestionPath(id));
export const dropSuggestion = (id: string) => http.delete(suggestionPath(id));
