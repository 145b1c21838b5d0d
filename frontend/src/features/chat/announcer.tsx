"use client";
import { useEffect, useState } from "react";
import { useT } from "@/i18n";
import type { Session } from "./thread/session";

type News = "working" | "done" | "stopped" | "error" | "asks" | "decide";
/** `settling`: a run has ended, and its outcome is about to arrive. */
type State = News | "loading" | "settling";

/** Tells those who listen when work begins and ends; not each word of it. */
export function Announcer({ session }: { session: Session }) {
  const t = useT("chat.said");
  const state = stateOf(session);
  const [before, setBefore] = useState<{ threadId: string | null; state: State }>({
    threadId: session.threadId,
    state: state === "settling" ? "loading" : state,
  });
  const [news, setNews] = useState<News | null>(null);
  useEffect(() => {
    const timer = setTimeout(() => news && setNews(null), 10_000); // what is old is not read again
    return () => clearTimeout(timer);
  }, [news]);
  if (state !== "settling" && (before.state !== state || before.threadId !== session.threadId)) {
    setBefore({ threadId: session.threadId, state });
    // What a thread looks like when it is opened is no news.
    const opened = before.threadId !== session.threadId || before.state === "loading";
    if (!opened && state !== "loading" && (before.state === "working" || state === "working")) setNews(state);
  }
  return (
    <div role="status" aria-live="polite" className="sr-only">
      {news && t(news)}
    </div>
  );
}

function stateOf({ phase, running, interrupts, turns }: Session): State {
  const last = turns.at(-1);
  if (phase === "loading") return "loading";
  if (interrupts.length) return "decide";
  if (running) return "working";
  if (last?.runId && last.endedAt === null) return "settling";
  if (last?.clarification && last.clarification.answer === null) return "asks";
  return last?.state === "error" || last?.state === "stopped" ? last.state : "done";
}
