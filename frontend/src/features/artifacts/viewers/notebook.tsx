"use client";
import { cn } from "@/lib/cn";
import { useT } from "@/i18n";
import { nameOf } from "@/lib/files";
import { parseNotebook, type Cell, type Notebook, type Output } from "../notebook";
import { Broken } from "./broken";
import { MarkdownText } from "./markdown-text";
import { TextFrame } from "./text-frame";
import type { ViewerProps } from "./types";

export default function NotebookViewer({ file, onPath }: ViewerProps) {
  const t = useT("viewers.notebook");
  return (
    <TextFrame file={file}>
      {(text) => {
        const notebook = read(text);
        if (!notebook) return <Broken kind="notebook" />;
        return (
          <div
            tabIndex={0}
            role="region"
            aria-label={t("label", { name: nameOf(file.path) })}
            className="absolute inset-0 overflow-y-auto -outline-offset-2"
          >
            <div className="mx-auto max-w-[52rem] space-y-4 px-3 py-5 @xl:px-6">
              {notebook.cells.map((cell, index) => (
                <CellView key={index} cell={cell} language={notebook.language} file={file} onPath={onPath} />
              ))}
            </div>
          </div>
        );
      }}
    </TextFrame>
  );
}

interface CellProps extends ViewerProps {
  cell: Cell;
  language: string;
}

function CellView({ cell, language, file, onPath }: CellProps) {
  if (cell.kind === "markdown")
    return <MarkdownText file={file} onPath={onPath} text={cell.source} className="px-1 @xl:pl-12" />;
  if (cell.kind === "raw")
    return cell.source ? <Pre className="text-muted-foreground @xl:ml-12">{cell.source}</Pre> : null;
  return (
    <div className="@xl:flex @xl:gap-2">
      <span className="block w-10 shrink-0 pb-1 font-mono text-xs text-muted-foreground tabular-nums @xl:pt-2.5 @xl:text-right">
        {cell.count !== null && `[${cell.count}]`}
      </span>
      <div className="min-w-0 flex-1 space-y-2">
        {cell.source && (
          <MarkdownText
            file={file}
            onPath={onPath}
            text={fenced(cell.source, language)}
            className="[&_[data-streamdown=code-block-body]]:border-t-0! [&_[data-streamdown=code-block-header]]:hidden! [&_[data-streamdown=code-block]]:my-0!"
          />
        )}
        {cell.outputs.map((output, index) => (
          <OutputView key={index} output={output} />
        ))}
      </div>
    </div>
  );
}

function OutputView({ output }: { output: Output }) {
  const t = useT("viewers.notebook");
  if (output.kind === "image")
    return (
      <img src={output.src} alt={t("picture")} className="h-auto max-w-full rounded-lg border scheme-light" />
    );
  return (
    <Pre
      label={output.isError ? t("error") : t("output")}
      className={cn(output.isError && "border-destructive/30 bg-destructive-soft text-destructive")}
    >
      {output.text}
    </Pre>
  );
}

function Pre({ children, className, label }: { children: string; className?: string; label?: string }) {
  return (
    <pre
      tabIndex={0}
      role={label && "group"}
      aria-label={label}
      className={cn(
        "max-h-96 overflow-auto rounded-lg border px-3 py-2 font-mono text-xs leading-5",
        className,
      )}
    >
      {children}
    </pre>
  );
}

function fenced(source: string, language: string): string {
  const longest = Math.max(2, ...[...source.matchAll(/`+/g)].map((ticks) => ticks[0].length));
  const fence = "`".repeat(longest + 1);
  return `${fence}${language}\n${source}\n${fence}`;
}

function read(text: string): Notebook | null {
  try {
    return parseNotebook(text);
  } catch {
    return null;
  }
}
