"use client";
import { useQuery } from "@tanstack/react-query";
import { FilePenLine, FilePlus2, FileX2, History, type LucideIcon } from "lucide-react";
import { useState } from "react";
import { useLocale, useT } from "@/i18n";
import { cn } from "@/lib/cn";
import { formatBytes, formatRelativeTime } from "@/lib/format";
import { Button } from "@/ui/button";
import { EmptyState } from "@/ui/empty-state";
import { ErrorState } from "@/ui/error-state";
import { Skeleton } from "@/ui/skeleton";
import { changesQuery, type RunChanges } from "./api";
import { FileName } from "./file-name";
import { nameOf } from "@/lib/files";
import { folderOf } from "./paths";

type Change = RunChanges["files"][number];

const LOOKS: Record<Change["change"], [LucideIcon, string]> = {
  created: [FilePlus2, "text-success"],
  modified: [FilePenLine, "text-warning"],
  deleted: [FileX2, "text-destructive"],
};
const FIRST = 12;

interface Props {
  threadId: string;
  onPath: (path: string) => void;
}

/** Changes of files by run, the newest run first. */
export function ChangesList({ threadId, onPath }: Props) {
  const t = useT("artifacts");
  const { data, error, refetch } = useQuery(changesQuery(threadId));
  if (!data) {
    if (error) return <ErrorState error={error} retry={() => void refetch()} />;
    return (
      <div className="space-y-3 p-4" aria-busy>
        {[40, 75, 60].map((width) => (
          <Skeleton key={width} className="h-4" style={{ width: `${width}%` }} />
        ))}
      </div>
    );
  }
  if (data.length === 0)
    return <EmptyState icon={<History />} title={t("emptyChanges")} text={t("emptyChangesText")} />;
  return (
    <ol className="px-2 py-3">
      {data.map((run) => (
        <Run key={`${run.run_id} ${run.ended_at}`} run={run} onPath={onPath} />
      ))}
    </ol>
  );
}

function Run({ run, onPath }: { run: RunChanges; onPath: (path: string) => void }) {
  const t = useT("artifacts.changes");
  const [locale] = useLocale();
  const [all, setAll] = useState(false);
  const count = (change: Change["change"]) => run.files.filter((file) => file.change === change).length;
  const summary = [
    count("created") && t("countCreated", { n: count("created") }),
    count("modified") && t("countModified", { n: count("modified") }),
    count("deleted") && t("countDeleted", { n: count("deleted") }),
  ].filter(Boolean);
  const shown = all || run.files.length <= FIRST + 1 ? run.files : run.files.slice(0, FIRST);
  return (
    <li className="relative ml-3.5 border-l pb-5 pl-4 last:pb-1">
      <span
        aria-hidden
        className="absolute top-1.5 -left-[4.5px] size-2 rounded-full bg-muted-foreground/60 ring-4 ring-background"
      />
      <p className="flex flex-wrap items-baseline gap-x-2 text-xs text-muted-foreground">
        <time
          dateTime={run.ended_at}
          title={new Date(run.ended_at).toLocaleString(locale)}
          className="font-medium text-foreground"
        >
          {formatRelativeTime(run.ended_at, locale)}
        </time>
        {summary.join(" · ")}
      </p>
      <ul className="mt-1 -ml-2">
        {shown.map((file) => (
          <ChangedFile key={file.path} file={file} onPath={onPath} />
        ))}
      </ul>
      {shown.length < run.files.length && (
        <Button variant="ghost" size="xs" className="text-muted-foreground" onClick={() => setAll(true)}>
          {t("showRest", { n: run.files.length - shown.length })}
        </Button>
      )}
      {run.truncated && <p className="px-2 py-1 text-xs text-muted-foreground">{t("truncated")}</p>}
    </li>
  );
}

function ChangedFile({ file, onPath }: { file: Change; onPath: (path: string) => void }) {
  const t = useT("artifacts.changes");
  const [Icon, colour] = LOOKS[file.change];
  const folder = folderOf(file.path);
  return (
    <li>
      <button
        type="button"
        className="flex w-full items-center gap-2 rounded-md px-2 py-1 text-left text-[13px] hover:bg-accent pointer-coarse:min-h-10"
        onClick={() => onPath(file.path)}
      >
        <Icon aria-hidden className={cn("size-4 shrink-0", colour)} />
        <span className="sr-only">{t(file.change)}: </span>
        <FileName
          name={nameOf(file.path)}
          className={cn("shrink", file.change === "deleted" && "text-muted-foreground line-through")}
        />
        <span className="min-w-0 flex-1 truncate text-xs text-muted-foreground">{folder}</span>
        <span className="shrink-0 text-xs text-muted-foreground tabular-nums">{formatBytes(file.size)}</span>
      </button>
    </li>
  );
}
