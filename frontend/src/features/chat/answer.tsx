"use client";
import { CircleStop, RefreshCw } from "lucide-react";
import { Suspense, useRef, useState } from "react";
import { toast } from "@/ui/toast";
import { FileCard } from "@/features/artifacts";
import { useT } from "@/i18n";
import { afterPage } from "@/lib/late";
import { cn } from "@/lib/cn";
import { CopyButton } from "@/ui/copy-button";
import { Button } from "@/ui/button";
import { IconButton } from "@/ui/icon-button";
import { useChat } from "./chat-context";
import { Feedback } from "./marks/feedback";
import { Markdown } from "@/features/markdown";
import { ReceiptsMark } from "./marks/receipts-mark";
import { STEP, useStepMark } from "./steps/shown-step";
import { TimelineButton } from "./marks/timeline-button";
import type { Turn } from "./thread/turns";
import { Usage } from "./marks/usage";
import { useAction } from "./use-action";

const ReadAloud = afterPage(() => import("./marks/read-aloud"));
const MemoryMark = afterPage(() => import("./marks/memory-mark"));

/** The end of a turn: the agent's words and the files that it hands over. */
export function Answer({ turn }: { turn: Turn }) {
  const { threadId, actions } = useChat();
  // A failed run says the same in its error, with a way on.
  const mark = useStepMark(turn.answer?.id ?? "");
  const answer = turn.error && turn.answer?.text.trim() === turn.error.message.trim() ? null : turn.answer;
  return (
    <>
      {answer && (
        <div data-answer="" {...mark} className={STEP}>
          <Markdown text={answer.text} streaming={answer.streaming} listsSources className="py-1" />
        </div>
      )}
      {threadId && turn.presented.length > 0 && (
        <div className="my-2 grid items-start gap-2 sm:grid-cols-2">
          {turn.presented.map((path) => (
            <FileCard key={path} threadId={threadId} path={path} onOpen={() => actions.openFile(path)} />
          ))}
        </div>
      )}
    </>
  );
}

/** The answer of the turn, as it is drawn. */
const drawn = (row: Element | null) => row?.closest("article")?.querySelector("[data-answer]") ?? null;

/** The same without its buttons and styles. */
function htmlOf(row: Element | null): string | undefined {
  const answer = drawn(row)?.cloneNode(true) as Element | undefined;
  answer
    ?.querySelectorAll("button, [aria-hidden=true], [data-sources], style")
    .forEach((part) => part.remove());
  answer?.querySelectorAll("[class]").forEach((part) => part.removeAttribute("class"));
  return answer?.innerHTML;
}

/** The run was stopped, by its person or because it was brought back from a backup: it goes on only if asked to. */
export function StoppedMark({ last, busy }: { last: boolean; busy: boolean }) {
  const t = useT("chat.answer");
  const { actions } = useChat();
  const { pending, run } = useAction();
  return (
    <div className="flex flex-wrap items-center gap-2 py-1 text-[13px] text-muted-foreground">
      <CircleStop aria-hidden className="size-4 shrink-0" />
      <p>{t("stopped")}</p>
      {last && (
        <Button
          variant="link"
          size="xs"
          disabled={busy || pending}
          onClick={() => run(() => actions.send(t("goOnSay")))}
        >
          {t("goOn")}
        </Button>
      )}
    </div>
  );
}

/** Copy, answer again, rate, cost. In sight under the last answer, elsewhere on hover. */
export function AnswerActions({ turn, last, busy }: { turn: Turn; last: boolean; busy: boolean }) {
  const t = useT("chat.answer");
  const { threadId, actions } = useChat();
  const { pending, run } = useAction();
  const [wanted, setWanted] = useState(false);
  const row = useRef<HTMLDivElement>(null);
  const regenerate = async () => {
    if (!(await run(() => actions.regenerate(turn.id)))) toast.error(t("failed"));
  };
  return (
    <div
      ref={row}
      className={cn(
        "-ml-1.5 flex min-h-8 flex-wrap items-center transition-opacity pointer-coarse:min-h-10",
        !last &&
          "opacity-0 group-focus-within/turn:opacity-100 group-hover/turn:opacity-100 pointer-coarse:opacity-100",
      )}
      onPointerEnter={() => setWanted(true)}
      onFocus={() => setWanted(true)}
    >
      {turn.answer && (
        <CopyButton
          value={turn.answer.text.replaceAll("[citation:", "[")}
          html={() => htmlOf(row.current)}
          label={t("copy")}
        />
      )}
      {turn.answer && (
        <Suspense fallback={<span className="size-7 pointer-coarse:size-10" />}>
          <ReadAloud turnId={turn.id} answer={() => drawn(row.current)} />
        </Suspense>
      )}
      {turn.question && (
        <IconButton
          label={t("regenerate")}
          size="icon-xs"
          className="text-muted-foreground"
          disabled={busy || pending}
          onClick={regenerate}
        >
          <RefreshCw aria-hidden className={cn(pending && "animate-spin")} />
        </IconButton>
      )}
      {threadId && turn.runId && <Feedback threadId={threadId} runId={turn.runId} wanted={wanted || last} />}
      <TimelineButton runId={turn.runId} />
      {turn.usage && <Usage usage={turn.usage} />}
      {threadId && <ReceiptsMark threadId={threadId} turn={turn} />}
      {threadId && turn.recalled && (
        <Suspense>
          <MemoryMark threadId={threadId} turn={turn} recalled={turn.recalled} />
        </Suspense>
      )}
    </div>
  );
}
