"use client";
import { queryOptions } from "@tanstack/react-query";
import type { components } from "./api-types";
import { http, request } from "./http";
import { keys } from "./keys";

/** Setting of this device: the browser may turn speech into text. */
export const BY_BROWSER = "dictation.browser";

/** Features of the server, which an administrator may change at any time. */
export const featuresQuery = queryOptions({
  queryKey: keys.features,
  queryFn: ({ signal }) => http.get<components["schemas"]["Features"]>("/api/features", { signal }),
  staleTime: 60_000,
});

/** Seconds after which a recording ends by itself. */
export const MOST_SECONDS = 300;

/** Text of a recording, by the server's endpoint. */
export async function transcribe(sound: Blob, signal: AbortSignal): Promise<string> {
  const answer = await request("POST", "/api/transcriptions", {
    body: sound,
    headers: { "Content-Type": sound.type },
    signal,
  });
  return ((await answer.json()) as components["schemas"]["Transcription"]).text;
}

/** As far as we use it: TypeScript knows it not, since it is no standard yet. */
export interface Recognition {
  lang: string;
  continuous: boolean;
  onresult:
    | ((event: {
        resultIndex: number;
        results: ArrayLike<{ isFinal: boolean; 0: { transcript: string } }>;
      }) => void)
    | null;
  onerror: ((event: { error: string }) => void) | null;
  onend: (() => void) | null;
  start(): void;
  stop(): void;
  abort(): void;
}

/** The browser's own; null: it has none. */
export function recognitionOf(): (new () => Recognition) | null {
  const place = window as unknown as Record<string, (new () => Recognition) | undefined>;
  return place["SpeechRecognition"] ?? place["webkitSpeechRecognition"] ?? null;
}

/** Browsers give pages without https no microphone. */
export const isSecure = () => window.isSecureContext;
