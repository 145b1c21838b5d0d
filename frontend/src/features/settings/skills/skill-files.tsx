"use client";
import { useQuery, type UseQueryResult } from "@tanstack/react-query";
import { ChevronRight } from "lucide-react";
import { useState } from "react";
import { Markdown } from "@/features/markdown";
import { useT } from "@/i18n";
import { cn } from "@/lib/cn";
import { formatBytes } from "@/lib/format";
import { ErrorState } from "@/ui/error-state";
import { Skeleton } from "@/ui/skeleton";
import { Waiting } from "../parts";
import { fileText, skillKeys, type SkillFiles } from "./api";

/** Without the settings between `---` lines. */
export const bodyOf = (text: string) => text.replace(/^\uFEFF?---[ \t]*\r?\n[^]*?\n---[ \t]*(?:\r?\n|$)/, "");

export function SkillMarkdown({ text }: { text: string }) {
  return (
    <div className="rounded-xl border bg-card px-4 py-4 sm:px-5">
      <Markdown text={bodyOf(text)} />
    </div>
  );
}

/** Files of a skill's folder; each opens in place. */
export function SkillFileList({ name, folder }: { name: string; folder: UseQueryResult<SkillFiles> }) {
  const t = useT("skills");
  if (!folder.data) return <Waiting error={folder.error} retry={() => void folder.refetch()} />;
  return (
    <ul aria-label={t("filesOf", { name })} className="divide-y rounded-xl border bg-card">
      {folder.data.files.map(({ path, size }) => (
        <FileRow key={path} name={name} path={path} size={size} />
      ))}
    </ul>
  );
}

function FileRow({ name, path, size }: { name: string; path: string; size: number }) {
  const [open, setOpen] = useState(false);
  return (
    <li>
      <button
        type="button"
        aria-expanded={open}
        onClick={() => setOpen(!open)}
        className="flex min-h-10 w-full items-center gap-2 px-4 py-2 text-left text-[13px] -outline-offset-2 hover:bg-accent/40 pointer-coarse:min-h-11"
      >
        <ChevronRight
          aria-hidden
          className={cn("size-4 shrink-0 text-muted-foreground transition-transform", open && "rotate-90")}
        />
        <span className="min-w-0 flex-1 font-mono break-all">{path}</span>
        <span className="shrink-0 text-xs text-muted-foreground tabular-nums">{formatBytes(size)}</span>
      </button>
      {open && <FileContent name={name} path={path} />}
    </li>
  );
}

/** Highlighting is not worth waiting for in what is larger. */
const HIGHLIGHTED = 60_000;

function FileContent({ name, path }: { name: string; path: string }) {
  const { data, error, refetch } = useQuery({
    queryKey: skillKeys.file(name, path),
    queryFn: () => fileText(name, path),
    retry: false,
  });
  if (data === undefined)
    return (
      <div className="px-4 pb-3">
        {error ? (
          <ErrorState compact error={error} retry={() => void refetch()} />
        ) : (
          <Skeleton className="h-24" />
        )}
      </div>
    );
  if (/\.(md|markdown)$/i.test(path) && path !== "SKILL.md")
    return <Markdown text={data} className="border-t px-4 py-3 sm:px-5" />;
  if (data.length > HIGHLIGHTED)
    return (
      <pre
        tabIndex={0}
        className="max-h-[60dvh] overflow-auto border-t bg-code px-4 py-3 font-mono text-xs leading-5 text-code-foreground"
      >
        {data}
      </pre>
    );
  return <Markdown text={fenced(data, path)} className="px-4 pb-3" />;
}

/** As a block of code of its own language, whatever stands in it. */
function fenced(text: string, path: string) {
  const longest = Math.max(2, ...(text.match(/`+/g) ?? []).map((run) => run.length));
  const fence = "`".repeat(longest + 1);
  const language = path === "SKILL.md" ? "markdown" : (/\.(\w+)$/.exec(path)?.[1] ?? "");
  return `${fence}${language}\n${text.replace(/\n$/, "")}\n${fence}`;
}
