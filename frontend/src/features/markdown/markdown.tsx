"use client";
import { lazy, memo, Suspense, useDeferredValue } from "react";
import { cn } from "@/lib/cn";

// Shiki and KaTeX stay out of the first load.
const load = () => import("./rich");
const Rich = lazy(load);

/** Before the first text is there. */
export const preloadMarkdown = () => void load();

interface MarkdownProps {
  text: string;
  streaming?: boolean;
  className?: string;
}

/** A text as agents write it. Around it, `MarkdownPlace` says whose files its links lead to. */
export const Markdown = memo(function Markdown({ text, streaming = false, className }: MarkdownProps) {
  const shown = useDeferredValue(text); // a slow parse never blocks typing or scrolling
  return (
    <div className={cn("prose-chat", streaming && "prose-growing", className)}>
      <Suspense fallback={<div className="whitespace-pre-wrap">{text}</div>}>
        <Rich text={shown} streaming={streaming} />
      </Suspense>
    </div>
  );
});
