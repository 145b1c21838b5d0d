"use client";
import { Archive, ArchiveRestore, ArrowLeft, MessagesSquare, Trash2, X } from "lucide-react";
import { useEffect, useEffectEvent, useRef, useState, type KeyboardEvent, type ReactNode } from "react";
import { useT } from "@/i18n";
import { useThreadId } from "@/lib/route";
import { Button } from "@/ui/button";
import { EmptyState } from "@/ui/empty-state";
import { ErrorState } from "@/ui/error-state";
import { IconButton } from "@/ui/icon-button";
import { Skeleton } from "@/ui/skeleton";
import { Spinner } from "@/ui/spinner";
import { byPeriod, type ThreadItem } from "./group";
import { ThreadRow } from "./thread-row";
import { useThreadActions, type ThreadActions } from "./use-thread-actions";
import { useThreads } from "./use-threads";

interface ThreadListProps {
  archived: boolean;
  /** Back to those that are not archived. */
  onBack: () => void;
  onOpen: () => void;
}

export function ThreadList({ archived, onBack, onOpen }: ThreadListProps) {
  const t = useT("threads");
  const { pinned, others, list } = useThreads(archived);
  const actions = useThreadActions();
  const current = useThreadId();
  const [marked, setMarked] = useState<readonly string[]>([]);
  const all = [...pinned, ...others].map(({ id }) => id);
  const chosen = marked.filter((id) => all.includes(id));
  const toggle = (id: string) =>
    setMarked(chosen.includes(id) ? chosen.filter((one) => one !== id) : [...chosen, id]);

  if (list.isPending) return <Waiting />;
  if (list.isError && !list.data) return <ErrorState error={list.error} retry={() => void list.refetch()} />;

  const row = (thread: ThreadItem) => (
    <ThreadRow
      key={thread.id}
      thread={thread}
      active={thread.id === current}
      actions={actions}
      chosen={chosen.length ? chosen.includes(thread.id) : null}
      onChoose={toggle}
      onDelete={(id) => actions.remove(chosen.length ? chosen : [id])}
      onOpen={onOpen}
    />
  );
  return (
    <div
      onKeyDown={(event) => {
        moveFocus(event);
        if (event.key !== "Escape" || !chosen.length) return;
        event.preventDefault();
        event.stopPropagation();
        setMarked([]);
      }}
    >
      {chosen.length > 0 && <Chosen {...{ chosen, archived, actions }} onDone={() => setMarked([])} />}
      {archived && !chosen.length && (
        <Button variant="ghost" size="sm" className="mb-2 w-full justify-start px-2.5" onClick={onBack}>
          <ArrowLeft aria-hidden />
          {t("archivedChats")}
        </Button>
      )}
      {!all.length && !list.hasNextPage && (
        <EmptyState
          icon={archived ? <Archive /> : <MessagesSquare />}
          title={t(archived ? "archiveEmpty" : "empty")}
          text={t(archived ? "archiveEmptyText" : "emptyText")}
        />
      )}
      {pinned.length > 0 && <Group title={t("pinned")}>{pinned.map(row)}</Group>}
      {byPeriod(others).map(([period, threads]) => (
        <Group key={period} title={t(`periods.${period}`)}>
          {threads.map(row)}
        </Group>
      ))}
      {list.hasNextPage && (
        <More loading={list.isFetchingNextPage} onSeen={() => void list.fetchNextPage()} />
      )}
    </div>
  );
}

interface ChosenProps {
  chosen: readonly string[];
  archived: boolean;
  actions: ThreadActions;
  onDone: () => void;
}

/** Actions for several threads at a time. */
function Chosen({ chosen, archived, actions, onDone }: ChosenProps) {
  const t = useT("threads");
  const common = useT("common");
  return (
    <div
      role="toolbar"
      aria-label={t("chosen", { count: chosen.length })}
      className="sticky top-0 z-10 mb-2 flex items-center gap-1 rounded-lg border bg-card py-1 pr-1 pl-2.5 text-[13px]"
    >
      <span role="status" className="min-w-0 flex-1 truncate">
        {t("chosen", { count: chosen.length })}
      </span>
      <IconButton
        label={t(archived ? "unarchive" : "archive")}
        onClick={() => {
          onDone();
          void actions.archive(chosen, !archived).catch(() => {});
        }}
      >
        {archived ? <ArchiveRestore aria-hidden /> : <Archive aria-hidden />}
      </IconButton>
      <IconButton label={common("delete")} onClick={() => actions.remove(chosen)}>
        <Trash2 aria-hidden />
      </IconButton>
      <IconButton label={common("cancel")} onClick={onDone}>
        <X aria-hidden />
      </IconButton>
    </div>
  );
}

function Group({ title, children }: { title: string; children: ReactNode }) {
  return (
    <section className="pb-3">
      <h2 className="px-2.5 pt-1 pb-1 text-xs font-medium text-muted-foreground">{title}</h2>
      <ul className="flex flex-col gap-px">{children}</ul>
    </section>
  );
}

/** The next page is asked for shortly before its place comes into sight. */
function More({ loading, onSeen }: { loading: boolean; onSeen: () => void }) {
  const t = useT("threads");
  const mark = useRef<HTMLDivElement>(null);
  const seen = useEffectEvent(onSeen);
  useEffect(() => {
    if (loading || !mark.current) return;
    const observer = new IntersectionObserver(([entry]) => entry?.isIntersecting && seen(), {
      rootMargin: "300px",
    });
    observer.observe(mark.current);
    return () => observer.disconnect();
  }, [loading]);
  return (
    <div ref={mark} className="flex justify-center py-3 text-muted-foreground">
      <Spinner label={t("loadingMore")} />
    </div>
  );
}

const WIDTHS = ["w-4/5", "w-3/5", "w-2/3", "w-4/5", "w-1/2", "w-3/4"];

function Waiting() {
  const common = useT("common");
  return (
    <div role="status" aria-label={common("loading")} className="flex flex-col gap-px pt-6">
      {WIDTHS.map((width, index) => (
        <div key={index} className="flex h-9 items-center px-2.5">
          <Skeleton className={`h-3 bg-sidebar-accent ${width}`} />
        </div>
      ))}
    </div>
  );
}

/** Up and down go from chat to chat. */
function moveFocus(event: KeyboardEvent<HTMLElement>) {
  if (event.key !== "ArrowDown" && event.key !== "ArrowUp") return;
  const rows = Array.from(event.currentTarget.querySelectorAll<HTMLElement>("[data-thread-row]"));
  const at = rows.indexOf(event.target as HTMLElement);
  if (at < 0) return;
  event.preventDefault();
  rows[at + (event.key === "ArrowDown" ? 1 : -1)]?.focus();
}
