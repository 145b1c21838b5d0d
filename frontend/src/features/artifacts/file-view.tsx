"use client";
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { createElement, Suspense, useEffect, useState } from "react";
import { LateTexts, useT } from "@/i18n";
import { ApiError } from "@/lib/http";
import { keys } from "@/lib/keys";
import { Button } from "@/ui/button";
import { ConfirmDialog } from "@/ui/dialog";
import { ErrorState } from "@/ui/error-state";
import { factsQuery, type Facts, type FileAt } from "./api";
import { Compare } from "./compare";
import { FileEditor } from "./editor";
import { FileHeader } from "./file-header";
import { Gone } from "./gone";
import { hasTwoSides, kindOf, type Mode } from "./kinds";
import { nameOf } from "@/lib/files";
import { forgetUnsaved, hasUnsaved, unsavedOf } from "./unsaved";
import { VersionBar } from "./version-bar";
import { viewerFor } from "./viewers";
import { Waiting } from "./viewers/text-frame";
import { texts } from "./viewers/texts";

interface FileViewProps {
  threadId: string;
  path: string;
  onPath: (path: string) => void;
  onClose: () => void;
  onTellAgent?: (text: string) => void;
}

interface Shown {
  version: number | null;
  facts: Facts;
}

/** One file: its head, its versions, and what fits it to be looked at or edited. */
export default function FileView(props: FileViewProps) {
  return (
    <LateTexts of={texts} fallback={<Waiting />}>
      <WholeView {...props} />
    </LateTexts>
  );
}

function WholeView({ threadId, path, onPath, onClose, onTellAgent }: FileViewProps) {
  const t = useT("artifacts");
  const client = useQueryClient();
  const [version, setVersion] = useState<number | null>(null);
  const [dirty, setDirty] = useState(() => unsavedOf(threadId, path) !== undefined);
  const [mode, setMode] = useState<Mode>(dirty ? "edit" : "preview");
  const [leaving, setLeaving] = useState<(() => void) | null>(null);
  const [shown, setShown] = useState<Shown | null>(null);
  const { data, error, refetch } = useQuery(factsQuery(threadId, path, version));
  useWarning();
  // What is looked at stays as it is until the person asks for what it has become.
  if (data && shown?.version !== version) setShown({ version, facts: data });
  else if (data && shown && mode === "edit" && shown.facts !== data) setShown({ version, facts: data });

  const name = nameOf(path);
  const file: FileAt | null = shown?.version === version ? { threadId, path, version, ...shown.facts } : null;
  const kind = kindOf(name, file?.mime);
  const isGone = error instanceof ApiError && error.status === 404;
  const hasChanged = file && data && version === null && mode !== "edit" && data.etag !== file.etag;
  /** Asks first if that would lose what was typed. */
  const leave = (action: () => void) => (dirty ? setLeaving(() => action) : action());
  const refresh = () => {
    for (const key of [keys.file(threadId, path), keys.versions(threadId, path), keys.artifacts(threadId)])
      void client.invalidateQueries({ queryKey: key });
  };
  const look = (next: number | null) =>
    leave(() => {
      setVersion(next);
      setMode("preview");
    });

  return (
    <>
      <FileHeader
        threadId={threadId}
        path={path}
        file={isGone ? null : file}
        kind={kind}
        mode={mode}
        version={version}
        onMode={(next) => leave(() => setMode(next))}
        onVersion={look}
        onPath={(next) => leave(() => onPath(next))}
        onClose={() => leave(onClose)}
      />
      {version !== null && file && (
        <VersionBar file={file} mode={mode} onMode={setMode} onNow={() => look(null)} onRestored={refresh} />
      )}
      {hasChanged && (
        <div
          role="status"
          className="flex shrink-0 items-center justify-between gap-3 border-b bg-warning-soft px-4 py-1.5 text-[13px] text-warning"
        >
          {t("view.changed")}
          <Button variant="outline" size="xs" onClick={() => setShown({ version, facts: data })}>
            {t("view.showNew")}
          </Button>
        </div>
      )}
      {isGone && mode !== "edit" ? (
        <Gone threadId={threadId} path={path} onVersion={look} />
      ) : !file ? (
        error ? (
          <ErrorState error={error} retry={() => void refetch()} />
        ) : (
          <Waiting />
        )
      ) : (
        <Suspense fallback={<Waiting />}>
          {mode === "edit" ? (
            <FileEditor
              file={file}
              onDirty={setDirty}
              onDone={() => leave(() => setMode("preview"))}
              onSaved={refresh}
              onTellAgent={onTellAgent}
            />
          ) : mode === "compare" && version !== null ? (
            <Compare file={file} />
          ) : (
            <Viewer
              key={file.etag}
              file={file}
              source={mode === "code" && hasTwoSides(kind)}
              onPath={onPath}
            />
          )}
        </Suspense>
      )}
      <ConfirmDialog
        open={leaving !== null}
        onOpenChange={(open) => !open && setLeaving(null)}
        title={t("edit.discardTitle")}
        text={t("edit.discardText", { name })}
        confirm={t("edit.discard")}
        destructive
        onConfirm={() => {
          setDirty(false);
          forgetUnsaved(threadId, path);
          leaving?.();
        }}
      />
    </>
  );
}

function Viewer({ file, source, onPath }: { file: FileAt; source: boolean; onPath: (path: string) => void }) {
  return createElement(viewerFor(kindOf(nameOf(file.path), file.mime), source), { file, onPath });
}

/** The browser asks before it closes a page with something unsaved in it. */
function useWarning() {
  useEffect(() => {
    const warn = (event: BeforeUnloadEvent) => hasUnsaved() && event.preventDefault();
    window.addEventListener("beforeunload", warn);
    return () => window.removeEventListener("beforeunload", warn);
  }, []);
}
