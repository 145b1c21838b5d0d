"use client";
import { useEffect, useEffectEvent, useRef, useState } from "react";
import { useSession } from "@/features/chat";
import { useT } from "@/i18n";
import { showNotice } from "./notice";
import { bodyOf, outcomeOf, type Outcome } from "./outcome";

const MARKS: Record<Outcome, string> = { done: "✓", waiting: "?", failed: "✕" };

/** Tells a person who looks elsewhere that the agent is done or needs them; also owns the title of the page. */
export function useDoneNotification() {
  const t = useT("threads");
  const common = useT("common");
  const { threadId, running, title, turns, interrupts } = useSession();
  const [mark, setMark] = useState<Outcome | null>(null);
  const watched = useRef({ threadId, seen: false });
  const last = turns.at(-1);
  // How a run came out is known a moment after it has ended.
  const settled = !running && (interrupts.length > 0 || !last?.runId || last.endedAt !== null);

  const ended = useEffectEvent(() => {
    const outcome = outcomeOf(last, interrupts);
    if (!last || !outcome || document.visibilityState === "visible") return;
    setMark(outcome);
    const body = bodyOf(last, outcome) || (outcome === "waiting" ? t("notify.waitingText") : "");
    showNotice(t(`notify.${outcome}`, { title: title ?? common("untitled") }), body, threadId);
  });
  useEffect(() => {
    if (watched.current.threadId !== threadId) watched.current = { threadId, seen: false };
    if (running) watched.current.seen = true;
    if (!settled || !watched.current.seen) return;
    watched.current.seen = false;
    ended();
  }, [threadId, running, settled]);

  useEffect(() => {
    const seen = () => document.visibilityState === "visible" && setMark(null);
    document.addEventListener("visibilitychange", seen);
    return () => document.removeEventListener("visibilitychange", seen);
  }, []);

  useEffect(() => {
    const name = common("appName");
    const full = title ? `${title} · ${name}` : name;
    document.title = mark ? `${MARKS[mark]} ${full}` : full;
  }, [mark, title, common]);
}
