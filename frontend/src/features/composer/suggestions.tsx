"use client";
import { useQuery } from "@tanstack/react-query";
import { X } from "lucide-react";
import { useState, useSyncExternalStore } from "react";
import { useSession, type Turn } from "@/features/chat";
import { useT } from "@/i18n";
import { threadApi } from "@/lib/api";
import { http } from "@/lib/http";
import { keys } from "@/lib/keys";
import { IconButton } from "@/ui/icon-button";
import { ScrollBox } from "@/ui/scroll-box";

/** Length of the conversation that the model gets. */
const TURNS = 3;

/**
 * Suggestions for the next question. Requested only after an answer that arrived while this page was visible, so
 * that opening old chats costs nothing.
 */
export default function Suggestions({
  watched,
  modelName,
  onPick,
}: {
  watched: string | null;
  modelName: string | null;
  onPick: (text: string) => void;
}) {
  const t = useT("composer");
  const { threadId, turns, running, interrupts, queued } = useSession();
  const visible = useVisible();
  const [hidden, setHidden] = useState<string | null>(null);
  const last = turns.at(-1);

  const answer = last?.state === "done" && !last.clarification ? last.answer : null;
  const wanted =
    !!threadId &&
    !!answer &&
    !running &&
    !interrupts.length &&
    !queued.length &&
    visible &&
    watched === last?.id;
  const { data } = useQuery({
    queryKey: keys.suggestions(threadId ?? "", answer?.id ?? ""),
    queryFn: ({ signal }) => ask(threadId!, turns, modelName, signal),
    enabled: wanted,
    staleTime: Infinity,
    retry: false,
  });
  if (!wanted || !data?.length || hidden === answer.id) return null;
  return (
    <div
      role="group"
      aria-label={t("suggestions")}
      className="flex animate-rise items-start gap-1 px-1 pb-2.5"
    >
      <ScrollBox
        label={t("suggestions")}
        className="flex min-w-0 flex-1 [scrollbar-width:none] gap-1.5 sm:flex-wrap"
      >
        {data.map((text) => (
          <button
            key={text}
            type="button"
            onClick={() => onPick(text)}
            className="max-w-full shrink-0 rounded-full border bg-background px-3 py-1 text-left text-[13px] leading-5 text-muted-foreground transition-colors hover:border-input hover:bg-accent hover:text-foreground max-sm:max-w-none max-sm:whitespace-nowrap pointer-coarse:py-2.5"
          >
            {text}
          </button>
        ))}
      </ScrollBox>
      <IconButton
        label={t("suggestionsHide")}
        size="icon-xs"
        className="text-muted-foreground"
        onClick={() => setHidden(answer.id)}
      >
        <X aria-hidden />
      </IconButton>
    </div>
  );
}

async function ask(threadId: string, turns: readonly Turn[], modelName: string | null, signal: AbortSignal) {
  const messages = turns
    .slice(-TURNS)
    .flatMap((turn) => [
      ...(turn.question?.text ? [{ role: "user", content: turn.question.text }] : []),
      ...(turn.answer?.text ? [{ role: "assistant", content: turn.answer.text }] : []),
    ]);
  const body = { messages, n: 3, model_name: modelName };
  const answer = await http.post<{ suggestions: string[] }>(threadApi(threadId, "/suggestions"), body, {
    signal,
  });
  return answer.suggestions;
}

function useVisible() {
  return useSyncExternalStore(
    (f) => {
      document.addEventListener("visibilitychange", f);
      return () => document.removeEventListener("visibilitychange", f);
    },
    () => document.visibilityState === "visible",
    () => false,
  );
}
