"use client";
import { useEffect, useRef, useState, type ReactNode } from "react";
import { useT } from "@/i18n";
import { cn } from "@/lib/cn";
import { Button } from "@/ui/button";
import { CopyButton } from "@/ui/copy-button";
import { parseAnsi, withoutAnsi } from "@/lib/ansi";
import { useChat } from "../chat-context";
import { nameOf, ROOT, shortPath, threadPathOf } from "@/lib/files";
import { hostOf, isWeb } from "@/lib/web";
import { SiteIcon } from "@/ui/site-icon";
import type { Hit } from "./results";

const SHOWN_LINES = 120;
/** A live output is cut at its beginning. */
const LIVE_CHARACTERS = 20_000;

const frame = "overflow-hidden rounded-lg border bg-code text-code-foreground";

/** A framed text with a caption and a button that copies it. */
export function Block({
  label,
  copy,
  children,
}: {
  label?: string;
  copy?: () => string;
  children: ReactNode;
}) {
  return (
    <div className={cn(frame, "group/block relative")}>
      {label && <div className="border-b px-3 py-1 text-xs text-muted-foreground">{label}</div>}
      {children}
      {copy && (
        <CopyButton
          value={copy}
          className="absolute top-0.5 right-0.5 bg-code opacity-0 group-focus-within/block:opacity-100 group-hover/block:opacity-100 pointer-coarse:opacity-100"
        />
      )}
    </div>
  );
}

const pre = "font-mono text-[12.5px] leading-[1.6] whitespace-pre-wrap [overflow-wrap:anywhere] [tab-size:4]";

/** Output of a program. While it runs the end stays in sight, unless the person scrolls up. */
export function TerminalText({ text, live = false }: { text: string; live?: boolean }) {
  const box = useRef<HTMLDivElement>(null);
  const follows = useRef(true);
  const t = useT("chat.tool");
  const [all, setAll] = useState(false);
  const [shown, hidden] = live ? [text.slice(-LIVE_CHARACTERS), 0] : cutLines(text, all);
  useEffect(() => {
    if (live && follows.current && box.current) box.current.scrollTop = box.current.scrollHeight;
  }, [live, text]);
  const onScroll = () => {
    const { scrollTop, scrollHeight, clientHeight } = box.current!;
    follows.current = scrollHeight - scrollTop - clientHeight < 8;
  };
  return (
    <div ref={box} onScroll={onScroll} tabIndex={0} className="max-h-72 overflow-auto px-3 py-2">
      <pre className={pre}>
        {parseAnsi(shown).map((piece, i) => (
          <span key={i} className={piece.className || undefined}>
            {piece.text}
          </span>
        ))}
      </pre>
      {hidden > 0 && <MoreLines label={t("more", { n: hidden })} onClick={() => setAll(true)} />}
    </div>
  );
}

export function PlainText({ text, className }: { text: string; className?: string }) {
  const t = useT("chat.tool");
  const [all, setAll] = useState(false);
  const [shown, hidden] = cutLines(text, all);
  return (
    <div tabIndex={0} className={cn("max-h-72 overflow-auto px-3 py-2", className)}>
      <pre className={pre}>{shown}</pre>
      {hidden > 0 && <MoreLines label={t("more", { n: hidden })} onClick={() => setAll(true)} />}
    </div>
  );
}

function MoreLines({ label, onClick }: { label: string; onClick: () => void }) {
  return (
    <Button variant="link" size="xs" className="mt-1 px-0" onClick={onClick}>
      {label}
    </Button>
  );
}

/** The text to show, and how many lines there are if that is not all. */
function cutLines(text: string, all: boolean): [string, number] {
  const lines = text.split("\n");
  return all || lines.length <= SHOWN_LINES + 20
    ? [text, 0]
    : [lines.slice(0, SHOWN_LINES).join("\n"), lines.length];
}

/** The path of a file, relative ones begin in the workspace; files of the thread can be opened. */
export function PathButton({ path, children }: { path: string; children?: ReactNode }) {
  const t = useT("chat.tool");
  const { actions } = useChat();
  const own = threadPathOf(path.startsWith("/") ? path : `${ROOT}workspace/${path.replace(/^(\.\/)+/, "")}`);
  const text = children ?? shortPath(path);
  if (!own || own.endsWith("/")) return <span className="font-mono text-[12.5px] break-all">{text}</span>;
  return (
    <button
      type="button"
      title={t("open", { name: nameOf(path) })}
      className="rounded-sm text-left font-mono text-[12.5px] break-all text-foreground underline decoration-border underline-offset-3 hover:decoration-current"
      onClick={() => actions.openFile(own)}
    >
      {text}
    </button>
  );
}

/** Links with the names of their hosts; no pictures, those would be loaded from elsewhere. */
export function HitList({ hits }: { hits: Hit[] }) {
  return (
    <ul className="flex flex-col gap-1.5">
      {hits.map((hit, i) => (
        <li key={i} className="min-w-0 text-[13px] leading-5">
          {isWeb(hit.url) && <SiteIcon url={hit.url} className="mr-2 -translate-y-px align-middle" />}
          {isWeb(hit.url) && (
            <a
              href={hit.url}
              target="_blank"
              rel="noopener noreferrer nofollow"
              className="font-medium break-words underline decoration-border underline-offset-3 hover:decoration-current"
            >
              {hit.title}
            </a>
          )}
          {hit.title !== hit.url && (
            <span className="ml-2 text-xs text-muted-foreground">{hostOf(hit.url)}</span>
          )}
          {hit.text && <p className="line-clamp-2 text-xs leading-5 text-muted-foreground">{hit.text}</p>}
        </li>
      ))}
    </ul>
  );
}

export const copyable = (text: string) => () => withoutAnsi(text);
