"use client";
import { useQuery } from "@tanstack/react-query";
import { useState, useSyncExternalStore } from "react";
import { Steps, TurnCache, useSession, type ThreadState, type Turn } from "@/features/chat";
import { Markdown } from "@/features/markdown";
import { useT } from "@/i18n";
import { keys } from "@/lib/keys";
import { ErrorState } from "@/ui/error-state";
import { Spinner } from "@/ui/spinner";
import { isAtWork } from "./parts";
import { storeOf } from "./task-store";
import type { ShownTask } from "./use-tasks";

/** Transcript of a sub-agent: live while it works, and stored afterwards. */
export function Transcript({ task }: { task: ShownTask }) {
  const t = useT("tasks");
  const session = useSession();
  const store = storeOf(session);
  const get = () => store.transcript(task.id);
  const state = useSyncExternalStore(store.subscribe, get, get);
  const { threadId } = session;
  const loading = useQuery({
    queryKey: [...keys.tasks(threadId ?? ""), task.id],
    queryFn: async ({ signal }) => {
      await store.load(threadId!, task.id, signal);
      return true;
    },
    enabled: threadId !== null && state === null,
  });
  const waiting = session.interrupts.flatMap(({ calls }) => calls.flatMap(({ id }) => id ?? []));
  const turn = useTurn(state, isAtWork(task), waiting);
  if (loading.isError)
    return <ErrorState compact error={loading.error} retry={() => void loading.refetch()} />;
  if (!state) return <Spinner className="text-muted-foreground" />;
  if (!turn) return <p className="text-[13px] text-muted-foreground">{t("nothing")}</p>;
  return (
    <>
      {turn.question && <Prompt text={turn.question.text} />}
      {turn.steps.length > 0 && (
        <Steps
          steps={turn.steps}
          working={isAtWork(task) && !turn.answer}
          duration={task.seconds * 1000 || null}
        />
      )}
      {turn.answer && (
        <Markdown text={turn.answer.text} streaming={turn.answer.streaming} className="py-1 text-sm" />
      )}
    </>
  );
}

function Prompt({ text }: { text: string }) {
  const t = useT("tasks");
  return (
    <section aria-label={t("prompt")} className="mb-2 rounded-lg bg-secondary px-3.5 py-2.5">
      <Markdown text={text} className="text-[13px]" />
    </section>
  );
}

/** It is one: the prompt, the steps, the answer. */
function useTurn(state: ThreadState | null, running: boolean, waiting: readonly string[]): Turn | undefined {
  const [cache] = useState(() => new TurnCache());
  if (!state) return undefined;
  const waitingCalls = new Set(waiting);
  return cache.turns(state.messages, {
    running,
    growing: state.growing,
    outputs: state.outputs,
    waiting: waiting.length > 0,
    waitingCalls,
    runs: NONE,
    branches: NONE,
    marks: state.marks,
  })[0];
}

const NONE = new Map<string, never>();
