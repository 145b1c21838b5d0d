"use client";
import { useT } from "@/i18n";
import { formatBytes } from "@/lib/format";
import { Button } from "@/ui/button";
import { EmptyState } from "@/ui/empty-state";
import { ErrorState } from "@/ui/error-state";
import { Spinner } from "@/ui/spinner";
import { FileX } from "lucide-react";
import type { ReactNode } from "react";
import { useText, type FileAt } from "../api";

interface Props {
  file: FileAt;
  children: (text: string, isPartial: boolean) => ReactNode;
}

/** Loads a text and shows it with `children`; of a large one its beginning, and a way to more. */
export function TextFrame({ file, children }: Props) {
  const t = useT("artifacts.view");
  const loaded = useText(file);
  if (loaded.text === undefined)
    return loaded.error ? <ErrorState error={loaded.error} retry={loaded.retry} /> : <Waiting />;
  if (loaded.total === 0) return <EmptyState icon={<FileX />} title={t("empty")} className="flex-1" />;
  return (
    <>
      <div className="relative min-h-0 flex-1">{children(loaded.text, loaded.isPartial)}</div>
      {loaded.isPartial && (
        <div className="flex shrink-0 items-center justify-between gap-3 border-t px-4 py-1.5 text-xs text-muted-foreground">
          {t("partial", { read: formatBytes(loaded.read), total: formatBytes(loaded.total) })}
          <Button variant="outline" size="xs" pending={loaded.isLoadingMore} onClick={loaded.more}>
            {t("loadMore")}
          </Button>
        </div>
      )}
    </>
  );
}

export function Waiting() {
  return (
    <div className="flex flex-1 animate-in items-center justify-center text-muted-foreground delay-150 duration-300 fade-in-0 fill-mode-both">
      <Spinner />
    </div>
  );
}
