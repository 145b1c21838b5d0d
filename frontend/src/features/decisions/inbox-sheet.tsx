"use client";
import { useQueryClient } from "@tanstack/react-query";
import { Clock, Inbox } from "lucide-react";
import { useRouter } from "next/navigation";
import { Suspense, useRef, useState } from "react";
import { Elsewhere } from "@/features/chat";
import { useLocale, useT } from "@/i18n";
import { threadApi, type WaitingThread } from "@/lib/api";
import { formatRelativeTime } from "@/lib/format";
import { http } from "@/lib/http";
import { keys } from "@/lib/keys";
import { isPlainClick, openThread, threadPath } from "@/lib/route";
import { useWaiting } from "@/lib/waiting";
import { EmptyState } from "@/ui/empty-state";
import { ErrorState } from "@/ui/error-state";
import { IconButton } from "@/ui/icon-button";
import { Sheet, SheetContent, SheetTitle } from "@/ui/sheet";
import { Skeleton } from "@/ui/skeleton";
import { toast } from "@/ui/toast";
import { TooltipProvider } from "@/ui/tooltip";

interface InboxSheetProps {
  open: boolean;
  onOpenChange: (open: boolean) => void;
}

/** All that waits for the person, decided right here. */
export default function InboxSheet({ open, onOpenChange }: InboxSheetProps) {
  return (
    <Sheet open={open} onOpenChange={onOpenChange}>
      <SheetContent
        aria-describedby={undefined}
        className="print:hidden"
        onOpenAutoFocus={(event) => {
          event.preventDefault(); // not on the cross
          (event.currentTarget as HTMLElement).focus();
        }}
      >
        <TooltipProvider>
          <List onClose={() => onOpenChange(false)} />
        </TooltipProvider>
      </SheetContent>
    </Sheet>
  );
}

function List({ onClose }: { onClose: () => void }) {
  const t = useT("decisions.inbox");
  const queries = useQueryClient();
  const { data, error, refetch } = useWaiting();
  /**
   * Threads answered here, until the list is updated: a running thread is not in it, though some of its calls
   * may be open.
   */
  const [answered, setAnswered] = useState<ReadonlyMap<string, { thread: WaitingThread; left: number }>>(
    new Map(),
  );
  const [said, setSaid] = useState("");
  const title = useRef<HTMLHeadingElement>(null);
  const listed = data ?? [];
  const isDone = ({ thread_id: id, since }: WaitingThread) => {
    const known = answered.get(id);
    return known?.left === 0 && known.thread.since === since;
  };
  const partly = [...answered.values()].flatMap(({ thread, left }) =>
    left > 0 && listed.every((one) => one.thread_id !== thread.thread_id) ? [thread] : [],
  );
  const threads = [...partly, ...listed.filter((one) => !isDone(one))].sort((one, other) =>
    other.since.localeCompare(one.since),
  );

  const settle = (thread: WaitingThread, left: number) => {
    setAnswered((known) => new Map([...known, [thread.thread_id, { thread, left }]]));
    const others = threads.filter((one) => one.thread_id !== thread.thread_id).length;
    setSaid(t("left", { n: others + (left ? 1 : 0) }));
    if (!left) title.current?.focus();
  };
  const putOff = async (thread: WaitingThread) => {
    try {
      await http.delete(threadApi(thread.thread_id, "/waiting"));
      settle(thread, 0);
    } catch (problem) {
      toast.error((problem as Error).message);
    }
    await queries.invalidateQueries({ queryKey: keys.waiting });
  };
  return (
    <>
      <header className="flex min-h-13 flex-col justify-center border-b px-4 py-2.5 pr-12">
        <SheetTitle ref={title} tabIndex={-1} className="outline-none">
          {t("title")}
        </SheetTitle>
        {threads.length > 0 && (
          <p className="text-[13px] text-muted-foreground">{t("count", { n: threads.length })}</p>
        )}
        <p role="status" className="sr-only">
          {said}
        </p>
      </header>
      <div className="flex flex-1 flex-col gap-7 overflow-y-auto p-4 pb-[max(1rem,env(safe-area-inset-bottom))]">
        {error && !data && <ErrorState compact error={error} retry={() => void refetch()} />}
        {!data && !error && <Skeleton className="h-36 rounded-2xl" />}
        {data && threads.length === 0 && (
          <EmptyState icon={<Inbox />} title={t("none")} text={t("noneText")} />
        )}
        {threads.map((thread) => (
          <Entry
            key={thread.thread_id}
            thread={thread}
            onClose={onClose}
            onAnswered={(left) => settle(thread, left)}
            onLater={() => void putOff(thread)}
          />
        ))}
      </div>
    </>
  );
}

interface EntryProps {
  thread: WaitingThread;
  onClose: () => void;
  onAnswered: (left: number) => void;
  onLater: () => void;
}

/** The conversation, since when it waits, and for what. */
function Entry({ thread: { thread_id: id, title, since }, onClose, onAnswered, onLater }: EntryProps) {
  const t = useT("decisions.inbox");
  const common = useT("common");
  const [locale] = useLocale();
  const router = useRouter();
  const name = title ?? common("untitled");
  const open = (path?: string) => {
    onClose();
    const query = path ? `?${new URLSearchParams({ panel: path })}` : "";
    const isInChats = /^\/chats(\/|$)/.test(window.location.pathname);
    if (isInChats && !query) openThread(id);
    else router.push(threadPath(id) + query);
  };
  return (
    <article aria-label={name} className="flex flex-col gap-2">
      <div className="flex items-center gap-2">
        <h3 className="min-w-0 flex-1 text-sm font-medium">
          <a
            href={threadPath(id)}
            title={t("open")}
            className="line-clamp-2 rounded-sm break-words underline-offset-3 hover:underline"
            onClick={(event) => {
              if (!isPlainClick(event)) return;
              event.preventDefault();
              open();
            }}
          >
            {name}
          </a>
        </h3>
        <time
          dateTime={since}
          title={new Date(since).toLocaleString(locale)}
          className="shrink-0 text-xs text-muted-foreground"
        >
          {formatRelativeTime(since, locale)}
        </time>
        <IconButton label={t("later", { title: name })} className="text-muted-foreground" onClick={onLater}>
          <Clock aria-hidden />
        </IconButton>
      </div>
      <Suspense fallback={<Skeleton className="h-36 rounded-2xl" />}>
        <Elsewhere threadId={id} since={since} onOpen={open} onAnswered={onAnswered} />
      </Suspense>
    </article>
  );
}
