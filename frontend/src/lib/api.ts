/** Requests to the gateway that several features share. The types are those of its OpenAPI description. */
import type { components } from "./api-types";
import { http } from "./http";

type Schemas = components["schemas"];
export type Account = Schemas["Account"];
export type SetupStatus = Schemas["SetupStatus"];
export type Site = Schemas["Site"];
export type Model = Schemas["Model"];
export type Models = Schemas["Models"];
export type Thread = Schemas["ThreadNow"];
export type FoundThread = Schemas["FoundThread"];
export type Run = Schemas["RunView"];
export type Task = Schemas["SubagentTask"];
export type TurnRecord = Schemas["ThreadTurn"];
export type Receipts = Schemas["RunReceipts"];
export type Timeline = Schemas["Timeline"];
export type Span = Schemas["Span"];
export type ContextTable = Schemas["ContextTable"];
export type Artifact = Schemas["Artifact"];
export type UploadedFile = Schemas["UploadedFile"];
export type UploadList = Schemas["UploadList"];
export type WaitingThread = Schemas["WaitingThread"];
export type WaitingFor = Schemas["WaitingFor"];
export type Hit = Schemas["Hit"];

/** `/api/threads/<id>` and what follows. */
export const threadApi = (id: string, rest = "") => `/api/threads/${encodeURIComponent(id)}${rest}`;

export const me = () => http.get<Account>("/api/v1/auth/me");
export const setupStatus = () => http.get<SetupStatus>("/api/v1/auth/setup-status");
export const site = () => http.get<Schemas["Site"]>("/api/v1/site");
export const models = () => http.get<Models>("/api/models");
export const thread = (id: string, signal?: AbortSignal) => http.get<Thread>(threadApi(id), { signal });
/** Initial values of a thread; uploads may have created it before. */
export async function noteThread(id: string, metadata: object) {
  await http.post("/api/threads", { thread_id: id, metadata });
  await http.patch(threadApi(id), { metadata });
}
export const waiting = async () =>
  (await http.get<Schemas["WaitingThreads"]>("/api/approvals/waiting")).threads;
export const turns = (id: string) => http.get<TurnRecord[]>(threadApi(id, "/turns"));
export const runs = (id: string, limit = 100) =>
  http.get<Run[]>(threadApi(id, "/runs"), { query: { limit } });

/** A title is made after the first run, or given by the person, so the thread's list entry knows it first. */
export async function title(id: string): Promise<string | null> {
  const found = await http.post<FoundThread[]>("/api/threads/search", {
    ids: [id],
    select: ["values.title"],
    limit: 1,
  });
  const told = found[0]?.values?.title;
  return typeof told === "string" ? told : null;
}
