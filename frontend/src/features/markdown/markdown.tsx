"use client";
import { memo, Suspense, useDeferredValue } from "react";
import { cn } from "@/lib/cn";
import { late, preload } from "@/lib/late";

// Shiki and KaTeX stay out of the first load.
const load = () => import("./rich");
const Rich = late(load);

/** Before the first text is there. */
export const preloadMarkdown = () => preload(load);

/** Code that is wider than its frame is scrolled by keyboard, too. Its blocks come late, one by one, from the highlighter. */
function letKeysReachCode(place: HTMLDivElement) {
  const reach = () =>
    place.querySelectorAll("pre:not([tabindex])").forEach((code) => code.setAttribute("tabindex", "0"));
  const observer = new MutationObserver(reach);
  observer.observe(place, { childList: true, subtree: true });
  reach();
  return () => observer.disconnect();
}

interface MarkdownProps {
  text: string;
  streaming?: boolean;
  /** A list of what it cites stands below it. */
  listsSources?: boolean;
  className?: string;
}

/** A text as agents write it. Around it, `MarkdownPlace` says whose files its links lead to. */
export const Markdown = memo(function Markdown(props: MarkdownProps) {
  const { text, streaming = false, listsSources = false, className } = props;
  const shown = useDeferredValue(text); // a slow parse never blocks typing or scrolling
  return (
    <div ref={letKeysReachCode} className={cn("prose-chat", streaming && "prose-growing", className)}>
      <Suspense fallback={<div className="whitespace-pre-wrap">{text}</div>}>
        <Rich text={shown} streaming={streaming} listsSources={listsSources} />
      </Suspense>
    </div>
  );
});
