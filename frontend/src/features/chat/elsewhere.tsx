"use client";
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useEffect, useEffectEvent, useRef, useState } from "react";
import { MarkdownPlace } from "@/features/markdown";
import { useT } from "@/i18n";
import { runs, threadApi, type WaitingFor } from "@/lib/api";
import { http } from "@/lib/http";
import { keys } from "@/lib/keys";
import { uuid } from "@/lib/uuid";
import { ErrorState } from "@/ui/error-state";
import { Skeleton } from "@/ui/skeleton";
import { ChatContext, type Chat, type ChatActions } from "./chat-context";
import { ClarificationCard } from "./clarification";
import { Interrupts } from "./interrupt";
import { asOption } from "./thread/options";
import { interruptOf } from "./thread/session-views";
import type { WaitingFor as Waiting } from "./thread/thread-state";

interface ElsewhereProps {
  threadId: string;
  since: string;
  /** Shows the conversation, and a file of it. */
  onOpen: (path?: string) => void;
  /** `left`: what else is open there. */
  onAnswered: (left: number) => void;
}

/** Open questions of another thread, which can be answered without opening it. Answered ones disappear at once. */
export default function Elsewhere({ threadId, since, onOpen, onAnswered }: ElsewhereProps) {
  const t = useT("decisions.inbox");
  const queries = useQueryClient();
  /** `since`: when the thread began to wait for what these answers were to. */
  const [answered, setAnswered] = useState<{ ids: readonly string[]; since: string }>({ ids: [], since });
  const isAsBefore = answered.since === since;
  const { data, error, refetch, isPlaceholderData } = useQuery({
    queryKey: keys.waitingFor(threadId, since),
    queryFn: () => http.get<WaitingFor>(threadApi(threadId, "/waiting")),
    // While an answer is on its way the thread is at work, and what is left would be gone and come again.
    enabled: !isAsBefore || answered.ids.length === 0,
    placeholderData: (before) => before,
  });
  const gone = isAsBefore || isPlaceholderData ? answered.ids : [];
  const all = (data?.interrupts ?? []) as unknown as Waiting[];
  const open = all.filter(({ id }) => !gone.includes(id));
  const latest = useRef(since);
  useEffect(() => {
    latest.current = since;
  }, [since]);
  const count = useEffectEvent(onAnswered);
  useEffect(() => {
    if (gone.length) count(open.length);
  }, [gone.length, open.length]);
  if (error) return <ErrorState compact error={error} retry={() => void refetch()} />;
  if (!data) return <Skeleton className="h-36 rounded-2xl" />;
  const { question } = data;

  const goOn = async (body: object) => {
    await http.post(threadApi(threadId, "/runs"), { ...(await asBefore(threadId)), ...body });
    void queries.invalidateQueries({ queryKey: keys.threads });
  };
  const actions: ChatActions = {
    openFile: onOpen,
    async respond(id, value) {
      await goOn({ command: { resume: { [id]: value } }, multitask_strategy: "enqueue" });
      // Meanwhile another answer may have arrived, and the thread may have worked and wait again.
      setAnswered((known) => {
        const before = known.since === latest.current ? known.ids : [];
        return { ids: [...before, id], since: latest.current };
      });
    },
    async send(content) {
      await goOn({ input: { messages: [{ type: "human", id: uuid(), content }] } });
      onAnswered(0);
    },
    ...inTheConversation(onOpen),
  };
  const chat: Chat = { threadId, actions };
  return (
    <ChatContext value={chat}>
      <MarkdownPlace value={{ threadId, openFile: onOpen }}>
        <Interrupts interrupts={open.map(interruptOf)} />
        {question && (
          <ClarificationCard
            asked={{ ...question, options: question.options.map(asOption), callId: "", answer: null }}
            busy={false}
            onOwn={() => onOpen()}
          />
        )}
        {!open.length && !question && <p className="text-[13px] text-muted-foreground">{t("gone")}</p>}
      </MarkdownPlace>
    </ChatContext>
  );
}

/** The run that goes on does so as the one that asked. */
async function asBefore(threadId: string) {
  const [asked] = await runs(threadId, 1);
  const { config, context } = (asked?.kwargs ?? {}) as { config?: unknown; context?: unknown };
  return {
    assistant_id: asked?.assistant_id ?? "lead_agent",
    ...(config ? { config } : {}),
    ...(context ? { context } : {}),
  };
}

/** Actions that need the open conversation. */
function inTheConversation(onOpen: () => void) {
  const open = async () => onOpen();
  return { edit: open, regenerate: open, retry: open, showBranch: open, openRun: open };
}
