"use client";
import { Markdown, MarkdownPlace } from "@/features/markdown";
import type { ViewerProps } from "./types";

interface Props extends ViewerProps {
  text: string;
  className?: string;
}

/** As answers look; links and pictures lead to other files of the thread, relative to this one. */
export function MarkdownText({ file, onPath, text, className }: Props) {
  return (
    <MarkdownPlace value={{ threadId: file.threadId, path: file.path, openFile: onPath }}>
      <Markdown text={text} listsSources className={className} />
    </MarkdownPlace>
  );
}
