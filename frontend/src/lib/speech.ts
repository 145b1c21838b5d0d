"use client";
import { useSyncExternalStore } from "react";
import { languageOf } from "./language";

/** The browser's speech: it reads one text of the page at a time, whatever is rendered meanwhile. */
let current: { id: string } | null = null;
const listeners = new Set<() => void>();

export const canSpeak = () =>
  typeof speechSynthesis === "object" && typeof SpeechSynthesisUtterance === "function";

/** The id of what is read now. */
export const useSpeaking = () =>
  useSyncExternalStore(
    (f) => {
      listeners.add(f);
      return () => listeners.delete(f);
    },
    () => current?.id ?? null,
    () => null,
  );

function set(next: typeof current) {
  current = next;
  listeners.forEach((f) => f());
}

export function stopSpeaking() {
  set(null);
  speechSynthesis.cancel();
}

/**
 * Reads a text, line by line in the line's own language. It ends with the page's path: who has left hears the sentence to its end.
 * `failed`: the browser has no voice for it.
 */
export function speak(id: string, text: string, fallback: string, failed: () => void) {
  speechSynthesis.cancel();
  const mine = { id };
  set(mine);
  const [place, whole] = [location.pathname, languageOf(text, fallback)];
  const pieces = text
    .split("\n")
    .flatMap((line) => piecesOf(line, line.length < 24 ? whole : languageOf(line, whole)));
  const next = () => {
    if (current !== mine) return;
    const piece = pieces.shift();
    if (!piece || location.pathname !== place) return set(null);
    const said = new SpeechSynthesisUtterance(piece.text);
    said.lang = piece.language;
    said.onend = next;
    said.onerror = ({ error }) => {
      if (current !== mine) return;
      set(null);
      if (error !== "canceled" && error !== "interrupted") failed();
    };
    speechSynthesis.speak(said);
  };
  next();
}

/** Characters that are spoken at once: some browsers fall silent in the middle of long texts. */
const MOST = 220;

function piecesOf(line: string, language: string): { text: string; language: string }[] {
  const pieces: string[] = [];
  const sentences = [...new Intl.Segmenter(language, { granularity: "sentence" }).segment(line)];
  for (const { segment } of sentences.flatMap(({ segment }) =>
    segment.length > MOST ? parts(segment) : { segment },
  )) {
    const last = pieces.at(-1);
    if (last !== undefined && last.length + segment.length <= MOST)
      pieces[pieces.length - 1] = last + segment;
    else pieces.push(segment);
  }
  return pieces.filter((text) => /[\p{L}\p{N}]/u.test(text)).map((text) => ({ text: text.trim(), language }));
}

/** A sentence that is too long, between its words. */
const parts = (sentence: string) =>
  (sentence.match(new RegExp(`.{1,${MOST}}(?=[\\s,;，；、]|$)|.{1,${MOST}}`, "gsu")) ?? []).map(
    (segment) => ({ segment }),
  );

if (typeof window === "object") window.addEventListener("pagehide", () => current && stopSpeaking());
