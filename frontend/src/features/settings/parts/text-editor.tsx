"use client";
import { Eye, GitCompare, PencilLine } from "lucide-react";
import { useEffect, useState } from "react";
import { Markdown } from "@/features/markdown";
import { useT } from "@/i18n";
import { DiffView } from "@/ui/diff-view";
import { SegmentedControl } from "@/ui/segmented";
import { Textarea } from "@/ui/textarea";

interface TextEditorProps {
  /** The name of the file, which names the field, too. */
  filename: string;
  value: string;
  onChange: (text: string) => void;
  /** As it is saved. */
  saved: string;
  /** Part of the text that the preview renders. */
  shown?: (text: string) => string;
  placeholder?: string;
  /** Characters. */
  limit?: number;
}

/** A text in Markdown that is written, looked at, and compared with what is saved. */
export function TextEditor({ filename, value, onChange, saved, shown, placeholder, limit }: TextEditorProps) {
  const t = useT("settings.editor");
  const [view, setView] = useState<"write" | "preview" | "changes">("write");
  const text = shown ? shown(value) : value;
  useWarning(value !== saved);
  return (
    <div className="flex min-w-0 flex-col gap-2.5">
      <div className="flex flex-wrap items-center justify-between gap-x-3 gap-y-2">
        <span className="font-mono text-[13px]">{filename}</span>
        <SegmentedControl
          label={t("view", { name: filename })}
          size="sm"
          value={view}
          onValueChange={setView}
          options={[
            { value: "write", label: t("write"), icon: <PencilLine aria-hidden /> },
            { value: "preview", label: t("preview"), icon: <Eye aria-hidden /> },
            { value: "changes", label: t("changes"), icon: <GitCompare aria-hidden /> },
          ]}
        />
      </div>
      {view === "write" && (
        <Textarea
          aria-label={filename}
          value={value}
          spellCheck={false}
          placeholder={placeholder}
          onChange={(event) => onChange(event.target.value)}
          className="max-h-[60dvh] min-h-64 overflow-y-auto font-mono text-[13px]"
        />
      )}
      {view === "preview" && (
        <div className="min-h-64 rounded-xl border bg-card px-4 py-3 sm:px-5">
          {text.trim() ? (
            <Markdown text={text} />
          ) : (
            <p className="text-sm text-muted-foreground">{t("empty")}</p>
          )}
        </div>
      )}
      {view === "changes" && <DiffView before={saved} after={value} filename={filename} />}
      {limit !== undefined && (
        <p
          role={value.length > limit ? "alert" : undefined}
          className={value.length > limit ? "text-xs text-destructive" : "text-xs text-muted-foreground"}
        >
          {t("length", { n: value.length, limit })}
        </p>
      )}
    </div>
  );
}

/** Leaving the page asks first if that would lose what was written. */
function useWarning(dirty: boolean) {
  useEffect(() => {
    if (!dirty) return;
    const warn = (event: BeforeUnloadEvent) => event.preventDefault();
    window.addEventListener("beforeunload", warn);
    return () => window.removeEventListener("beforeunload", warn);
  }, [dirty]);
}
