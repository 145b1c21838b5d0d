import type { components } from "@/lib/api-types";
import { http } from "@/lib/http";

type Schemas = components["schemas"];
export type Bot = Schemas["ChannelBot"];
export type Provider = Schemas["ChannelProvider"];
export type Field = Schemas["ChannelCredentialField"];
export type Linked = Schemas["ChannelAccount"];
export type Code = Schemas["ChannelCode"];
export type QrCode = Schemas["ChannelQrCode"];
export type QrState = Schemas["ChannelQrProgress"]["state"];
export type QrDraft = Pick<Schemas["ChannelQrQuestion"], "bot_id" | "agent" | "model" | "own">;
export type Values = Record<string, string>;

export const KEYS = {
  all: ["channels"],
  bots: ["channels", "bots"],
  providers: ["channels", "providers"],
  accounts: ["channels", "accounts"],
} as const;

const botPath = (id: string) => `/api/channels/bots/${encodeURIComponent(id)}`;

export const bots = async () => (await http.get<Schemas["ChannelBots"]>("/api/channels/bots")).bots;
export const providers = async () =>
  (await http.get<Schemas["ChannelProviders"]>("/api/channels/providers")).providers;
export const accounts = async () =>
  (await http.get<Schemas["ChannelAccounts"]>("/api/channels/connections")).connections;

export interface Draft {
  values: Values;
  agent: string | null;
  model: string | null;
}
export const addBot = (kind: string, own: boolean, draft: Draft) =>
  http.post<Bot>("/api/channels/bots", { kind, own, ...draft });
/** A secret that is left empty stays as it is kept. */
export const changeBot = (id: string, change: Partial<Draft> & { is_on?: boolean }) =>
  http.patch<Bot>(botPath(id), change);
export const removeBot = (id: string) => http.delete(botPath(id));
export const restartBot = (id: string) => http.post<Bot>(`${botPath(id)}/restart`);
export const testBot = (id: string) => http.post<Schemas["ChannelTest"]>(`${botPath(id)}/test`);

export const qrCode = (kind: string, signal: AbortSignal) =>
  http.post<QrCode>(`/api/channels/${encodeURIComponent(kind)}/qr-code`, undefined, { signal });
/** Answers when something happens, at the latest after half a minute. */
export const qrProgress = (kind: string, question: Schemas["ChannelQrQuestion"], signal: AbortSignal) =>
  http.post<Schemas["ChannelQrProgress"]>(
    `/api/channels/${encodeURIComponent(kind)}/qr-code/progress`,
    question,
    { signal },
  );

export const code = (kind: string) => http.post<Code>(`/api/channels/${encodeURIComponent(kind)}/connect`);
export const unlink = (id: string) => http.delete(`/api/channels/connections/${encodeURIComponent(id)}`);
