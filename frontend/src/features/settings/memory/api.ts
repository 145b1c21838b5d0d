import type { components } from "@/lib/api-types";
import { http } from "@/lib/http";

type Schemas = components["schemas"];
export type Memory = Schemas["MemoryDocument"];
export type Fact = Schemas["FactView"];

const ask = (agent: string | null) => ({ query: { agent } });
const factPath = (id: string) => `/api/memory/facts/${encodeURIComponent(id)}`;

/** Each change answers with all that is remembered then. */
export const memory = (agent: string | null) => http.get<Memory>("/api/memory", ask(agent));
export const forgetAll = (agent: string | null) => http.delete<Memory>("/api/memory", ask(agent));
export const importMemory = (agent: string | null, document: unknown) =>
  http.post<Memory>("/api/memory/import", document, ask(agent));
export const addFact = (agent: string | null, fact: Schemas["NewFact"]) =>
  http.post<Memory>("/api/memory/facts", fact, ask(agent));
export const changeFact = (agent: string | null, id: string, fact: Schemas["ChangedFact"]) =>
  http.patch<Memory>(factPath(id), fact, ask(agent));
export const forgetFact = (agent: string | null, id: string) => http.delete<Memory>(factPath(id), ask(agent));
export const confirmFact = (agent: string | null, id: string) =>
  http.post<Memory>(`${factPath(id)}/confirm`, undefined, ask(agent));
export const undoFact = (agent: string | null, id: string) =>
  http.post<Memory>(`${factPath(id)}/undo`, undefined, ask(agent));

export const isRemembering = async () =>
  (await http.get<Schemas["MemorySettings"]>("/api/memory/config")).enabled;
