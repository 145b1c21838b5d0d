"use client";
import { useQuery } from "@tanstack/react-query";
import { Download, FileStack, Search, Upload, X } from "lucide-react";
import { useState } from "react";
import { useT } from "@/i18n";
import { useStored } from "@/lib/storage";
import { Button } from "@/ui/button";
import { EmptyState } from "@/ui/empty-state";
import { ErrorState } from "@/ui/error-state";
import { IconButton } from "@/ui/icon-button";
import { Input } from "@/ui/input";
import { Skeleton } from "@/ui/skeleton";
import { Tabs, TabsContent, TabsList, TabsTrigger } from "@/ui/tabs";
import { SimpleTooltip } from "@/ui/tooltip";
import { deliveredQuery, uploadsQuery, zipUrl, type ListedFile } from "./api";
import { ChangesList } from "./changes-list";
import { FileRow } from "./file-row";
import { nameOf } from "@/lib/files";

const FILTER_FROM = 8;
const SHOWN = 300;

interface Props {
  threadId: string;
  onPath: (path: string) => void;
  onClose: () => void;
}

export default function FileLists({ threadId, onPath, onClose }: Props) {
  const t = useT("artifacts");
  const [tab, setTab] = useStored<string>("files.tab", "files");
  const delivered = useQuery(deliveredQuery(threadId));
  const uploads = useQuery(uploadsQuery(threadId));
  const files = delivered.data?.artifacts;
  return (
    <Tabs value={tab} onValueChange={setTab} className="flex min-h-0 flex-1 flex-col">
      <header className="flex h-12 shrink-0 items-center gap-1 border-b pr-2 pl-2">
        <TabsList className="h-full min-w-0 flex-1 border-0">
          <TabsTrigger value="files" className="h-full pointer-coarse:h-full">
            {t("tabs.files")}
            <Count of={files?.length} />
          </TabsTrigger>
          <TabsTrigger value="uploads" className="h-full pointer-coarse:h-full">
            {t("tabs.uploads")}
            <Count of={uploads.data?.length} />
          </TabsTrigger>
          <TabsTrigger value="changes" className="h-full pointer-coarse:h-full">
            {t("tabs.changes")}
          </TabsTrigger>
        </TabsList>
        {tab === "files" && files && files.length > 1 && (
          <SimpleTooltip label={t("downloadAll")}>
            <Button asChild variant="ghost" size="icon-sm" className="text-muted-foreground">
              <a href={zipUrl(threadId)} download aria-label={t("downloadAll")}>
                <Download aria-hidden />
              </a>
            </Button>
          </SimpleTooltip>
        )}
        <IconButton label={t("close")} className="text-muted-foreground" onClick={onClose}>
          <X aria-hidden />
        </IconButton>
      </header>
      <Body value="files">
        <List
          threadId={threadId}
          query={delivered}
          files={files && byTime(files)}
          truncated={delivered.data?.truncated}
          onPath={onPath}
          empty={<EmptyState icon={<FileStack />} title={t("emptyFiles")} text={t("emptyFilesText")} />}
        />
      </Body>
      <Body value="uploads">
        <List
          threadId={threadId}
          query={uploads}
          files={uploads.data && byTime(uploads.data)}
          onPath={onPath}
          empty={<EmptyState icon={<Upload />} title={t("emptyUploads")} text={t("emptyUploadsText")} />}
        />
      </Body>
      <Body value="changes">
        <ChangesList threadId={threadId} onPath={onPath} />
      </Body>
    </Tabs>
  );
}

function Body({ value, children }: { value: string; children: React.ReactNode }) {
  return (
    <TabsContent value={value} className="min-h-0 overflow-y-auto overscroll-contain -outline-offset-2">
      {children}
    </TabsContent>
  );
}

function Count({ of }: { of: number | undefined }) {
  if (!of) return null;
  return (
    <span className="rounded-full bg-muted px-1.5 text-xs leading-5 text-muted-foreground tabular-nums">
      {of}
    </span>
  );
}

interface ListProps {
  threadId: string;
  query: { error: unknown; refetch: () => unknown };
  files: ListedFile[] | undefined;
  truncated?: boolean;
  empty: React.ReactNode;
  onPath: (path: string) => void;
}

function List({ threadId, query, files, truncated, empty, onPath }: ListProps) {
  const t = useT("artifacts");
  const [filter, setFilter] = useState("");
  if (!files)
    return query.error ? <ErrorState error={query.error} retry={() => void query.refetch()} /> : <Loading />;
  if (files.length === 0) return empty;
  const wanted = filter.trim().toLowerCase();
  const found = wanted ? files.filter((file) => file.path.toLowerCase().includes(wanted)) : files;
  return (
    <div className="p-2">
      {files.length >= FILTER_FROM && (
        <div className="relative mb-2">
          <Search
            aria-hidden
            className="absolute top-1/2 left-3 size-4 -translate-y-1/2 text-muted-foreground"
          />
          <Input
            value={filter}
            onChange={(event) => setFilter(event.target.value)}
            placeholder={t("filter")}
            aria-label={t("filter")}
            className="pl-9"
          />
        </div>
      )}
      {found.length === 0 && (
        <EmptyState
          icon={<Search />}
          title={t("noMatch")}
          text={t("noMatchText", { text: filter })}
          action={
            <Button variant="outline" size="sm" onClick={() => setFilter("")}>
              {t("clearFilter")}
            </Button>
          }
        />
      )}
      <ul>
        {found.slice(0, SHOWN).map((file) => (
          <FileRow key={file.path} threadId={threadId} file={file} onPath={onPath} />
        ))}
      </ul>
      {(truncated || found.length > SHOWN) && (
        <p className="px-2 py-3 text-xs text-muted-foreground">{t("truncated")}</p>
      )}
    </div>
  );
}

function Loading() {
  return (
    <div className="p-2" aria-busy>
      {[72, 44, 60].map((width) => (
        <div key={width} className="flex items-center gap-3 p-2">
          <Skeleton className="size-9 rounded-lg" />
          <div className="flex-1 space-y-1.5">
            <Skeleton className="h-3.5" style={{ width: `${width}%` }} />
            <Skeleton className="h-3 w-24" />
          </div>
        </div>
      ))}
    </div>
  );
}

const byTime = (files: ListedFile[]) =>
  [...files].sort(
    (a, b) => b.modified.localeCompare(a.modified) || nameOf(a.path).localeCompare(nameOf(b.path)),
  );
