"use client";
import { MessagesSquare } from "lucide-react";
import { useEffect, useEffectEvent, useRef, useState, type KeyboardEvent, type ReactNode } from "react";
import { useT } from "@/i18n";
import { useThreadId } from "@/lib/route";
import { ConfirmDialog } from "@/ui/confirm-dialog";
import { EmptyState } from "@/ui/empty-state";
import { ErrorState } from "@/ui/error-state";
import { Skeleton } from "@/ui/skeleton";
import { Spinner } from "@/ui/spinner";
import { byPeriod, type ThreadItem } from "./group";
import { ThreadRow } from "./thread-row";
import { useThreadActions } from "./use-thread-actions";
import { useThreads } from "./use-threads";

export function ThreadList({ onOpen }: { onOpen: () => void }) {
  const t = useT("threads");
  const common = useT("common");
  const { pinned, others, list } = useThreads();
  const actions = useThreadActions();
  const current = useThreadId();
  const [doomed, setDoomed] = useState<ThreadItem | null>(null);

  if (list.isPending) return <Waiting />;
  if (list.isError && !list.data) return <ErrorState error={list.error} retry={() => void list.refetch()} />;
  if (!pinned.length && !others.length && !list.hasNextPage)
    return <EmptyState icon={<MessagesSquare />} title={t("empty")} text={t("emptyText")} />;

  const row = (thread: ThreadItem) => (
    <ThreadRow
      key={thread.id}
      thread={thread}
      active={thread.id === current}
      actions={actions}
      onDelete={setDoomed}
      onOpen={onOpen}
    />
  );
  return (
    <div onKeyDown={moveFocus}>
      {pinned.length > 0 && <Group title={t("pinned")}>{pinned.map(row)}</Group>}
      {byPeriod(others).map(([period, threads]) => (
        <Group key={period} title={t(`periods.${period}`)}>
          {threads.map(row)}
        </Group>
      ))}
      {list.hasNextPage && (
        <More loading={list.isFetchingNextPage} onSeen={() => void list.fetchNextPage()} />
      )}
      <ConfirmDialog
        open={doomed !== null}
        onOpenChange={(open) => !open && setDoomed(null)}
        title={t("deleteTitle", { title: doomed?.title ?? common("untitled") })}
        text={t("deleteText")}
        confirm={common("delete")}
        destructive
        onConfirm={() => doomed && actions.remove(doomed.id)}
      />
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
