"use client";
import { useMutation, useQuery } from "@tanstack/react-query";
import { Check, Send } from "lucide-react";
import { Suspense, useEffect, useState } from "react";
import { late } from "@/lib/late";
import { toast } from "@/ui/toast";
import { useT } from "@/i18n";
import { shortcutLabel } from "@/lib/shortcuts";
import { Button } from "@/ui/button";
import { ErrorState } from "@/ui/error-state";
import { SimpleTooltip } from "@/ui/tooltip";
import { readText, type FileAt } from "./api";
import { Conflict } from "./conflict";
import { save, type Text } from "./editing";
import { nameOf } from "@/lib/files";
import { forgetUnsaved, keepUnsaved, unsavedOf, type Unsaved } from "./unsaved";
import { Waiting } from "./viewers/text-frame";

const CodeMirrorEditor = late(() => import("./viewers/code-mirror"));

interface Props {
  file: FileAt;
  onDirty: (dirty: boolean) => void;
  onDone: () => void;
  onSaved: () => void;
  onTellAgent?: (text: string) => void;
}

/** Loads the whole text once, unless an edit of it was left unsaved; what comes later is met when saving. */
export function FileEditor(props: Props) {
  const { threadId, path } = props.file;
  const [kept] = useState(() => unsavedOf(threadId, path));
  const { data, error, refetch } = useQuery({
    queryKey: ["edit", threadId, path],
    queryFn: () => readText({ threadId, path, version: null }),
    enabled: !kept,
    staleTime: Infinity,
    gcTime: 0,
  });
  const initial = kept ?? (data && { base: data, draft: data.text });
  if (!initial) return error ? <ErrorState error={error} retry={() => void refetch()} /> : <Waiting />;
  return <Editing {...props} initial={initial} />;
}

function Editing({ file, initial, onDirty, onDone, onSaved, onTellAgent }: Props & { initial: Unsaved }) {
  const t = useT("artifacts.edit");
  const common = useT("common");
  const { threadId, path } = file;
  const name = nameOf(path);
  const [base, setBase] = useState(initial.base);
  const [draft, setDraft] = useState(initial.draft);
  const [theirs, setTheirs] = useState<Text | null>(null);
  const [wasSaved, setWasSaved] = useState(false);
  const dirty = draft !== base.text;

  useEffect(() => {
    onDirty(dirty);
    if (dirty) keepUnsaved(threadId, path, { base, draft });
    else forgetUnsaved(threadId, path);
  }, [dirty, base, draft, threadId, path, onDirty]);
  const saving = useMutation({
    mutationFn: ({ text, etag }: Text) => save(threadId, path, text, etag),
    onSuccess: (result, { text }) => {
      if (result.kind === "gone") return void toast.error(t("goneOnSave"));
      if (result.kind === "conflict") return setTheirs(result.theirs);
      setBase({ text, etag: result.etag });
      setTheirs(null);
      setWasSaved(true);
      onSaved();
    },
    onError: (error) => toast.error(t("failed", { reason: error.message })),
  });
  const submit = () => {
    if (!saving.isPending && dirty) saving.mutate({ text: draft, etag: base.etag });
  };

  if (theirs)
    return (
      <Conflict
        name={name}
        mine={draft}
        theirs={theirs.text}
        pending={saving.isPending}
        onKeepMine={() => saving.mutate({ text: draft, etag: theirs.etag })}
        onTakeTheirs={() => {
          setBase(theirs);
          setDraft(theirs.text);
          setTheirs(null);
          onSaved();
        }}
        onBack={() => setTheirs(null)}
      />
    );
  return (
    <>
      <div className="min-h-0 flex-1">
        <Suspense fallback={<Waiting />}>
          <CodeMirrorEditor
            text={draft}
            filename={name}
            label={t("editor", { name })}
            wrap
            onChange={setDraft}
            onSave={submit}
          />
        </Suspense>
      </div>
      <footer className="flex min-h-12 shrink-0 flex-wrap items-center gap-2 border-t px-3 py-1.5">
        <p
          role="status"
          className="flex min-w-0 flex-1 items-center gap-1.5 text-[13px] text-muted-foreground"
        >
          {dirty ? (
            <>
              <span aria-hidden className="size-1.5 rounded-full bg-warning" />
              {t("unsaved")}
            </>
          ) : (
            wasSaved && (
              <>
                <Check aria-hidden className="size-4 text-success" />
                {t("saved")}
              </>
            )
          )}
        </p>
        {wasSaved && !dirty && onTellAgent && (
          <Button variant="soft" size="sm" onClick={() => onTellAgent(t("message", { path }))}>
            <Send aria-hidden />
            {t("tell")}
          </Button>
        )}
        <Button variant="ghost" size="sm" onClick={onDone}>
          {wasSaved && !dirty ? common("close") : common("cancel")}
        </Button>
        <SimpleTooltip label={`${t("save")} ${shortcutLabel("mod+s")}`}>
          <Button size="sm" disabled={!dirty} pending={saving.isPending} onClick={submit}>
            {t("save")}
          </Button>
        </SimpleTooltip>
      </footer>
    </>
  );
}
