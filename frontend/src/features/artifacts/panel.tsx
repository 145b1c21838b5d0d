"use client";
import { Suspense } from "react";
import { useT } from "@/i18n";
import { cn } from "@/lib/cn";
import { late } from "@/lib/late";
import { Spinner } from "@/ui/spinner";

// Looking at a file brings viewers and an editor along: none of that is in the first load, nor are the lists.
const FileLists = late(() => import("./file-lists"));
const FileView = late(() => import("./file-view"));

export interface ArtifactPanelProps {
  threadId: string;
  /** "": the list. */
  path: string;
  onPath: (path: string) => void;
  onClose: () => void;
  /** Puts a message to the agent before the person, who may send it. */
  onTellAgent?: (text: string) => void;
  className?: string;
}

/** The files of a conversation: what was delivered, uploaded and changed, and each file by itself. Fills its parent. */
export function ArtifactPanel({
  threadId,
  path,
  onPath,
  onClose,
  onTellAgent,
  className,
}: ArtifactPanelProps) {
  const t = useT("artifacts");
  return (
    <section
      aria-label={t("panel")}
      data-file={path || undefined}
      className={cn("h-full min-h-0 min-w-0 bg-background", className)}
    >
      {/* Not the section itself: menus stand in it, and some browsers place what is fixed by the container. */}
      <div className="@container flex h-full flex-col">
        <Suspense fallback={<Waiting />}>
          {path === "" ? (
            <FileLists threadId={threadId} onPath={onPath} onClose={onClose} />
          ) : (
            <FileView
              key={`${threadId} ${path}`}
              threadId={threadId}
              path={path}
              onPath={onPath}
              onClose={onClose}
              onTellAgent={onTellAgent}
            />
          )}
        </Suspense>
      </div>
    </section>
  );
}

function Waiting() {
  return (
    <div className="flex flex-1 items-center justify-center text-muted-foreground">
      <Spinner />
    </div>
  );
}
