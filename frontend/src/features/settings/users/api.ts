import type { Site } from "@/lib/api";
import type { components } from "@/lib/api-types";
import { http } from "@/lib/http";

type Schemas = components["schemas"];
export type Person = Schemas["UserRecord"];

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
