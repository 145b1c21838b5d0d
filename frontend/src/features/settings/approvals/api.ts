import type { components } from "@/lib/api-types";
import { http } from "@/lib/http";

type Schemas = components["schemas"];
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
