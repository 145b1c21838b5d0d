import type { components } from "@/lib/api-types";
import { http } from "@/lib/http";

type Schemas = components["schemas"];
export type Token = Schemas["Token"];
export type Scope = Token["scopes"][number];

export const tokens = async () => (await http.get<Schemas["Tokens"]>("/api/v1/auth/tokens")).tokens;
export const createToken = (body: { name: string; scopes: Scope[]; expires_in_days: number | null }) =>
  http.post<Schemas["CreatedToken"]>("/api/v1/auth/tokens", body);
export const revokeToken = (id: string) => http.delete(`/api/v1/auth/tokens/${encodeURIComponent(id)}`);
