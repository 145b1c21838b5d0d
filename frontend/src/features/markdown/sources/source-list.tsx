"use client";
import { useQuery } from "@tanstack/react-query";
import { ArrowUpRight } from "lucide-react";
import { useId, useState } from "react";
import { LateTexts, useT } from "@/i18n";
import { hostOf } from "@/lib/web";
import { OpenMark } from "@/ui/open-mark";
import { SiteIcon } from "@/ui/site-icon";
import type { Source } from "./citations";
import { keptPage, pagesQuery } from "./pages";
import { usePlace } from "../place";
import { webTexts } from "../web";

/** All sources of a text in one line, which opens. */
export default function SourceList({ sources }: { sources: readonly Source[] }) {
  return (
    <LateTexts of={webTexts} fallback={<div className="h-8 pointer-coarse:h-10" />}>
      <Folded sources={sources} />
    </LateTexts>
  );
}

function Folded({ sources }: { sources: readonly Source[] }) {
  const t = useT("web");
  const [open, setOpen] = useState(false);
  const id = useId();
  const hosts = [...new Map(sources.map((source) => [hostOf(source.url), source.url])).values()];
  return (
    <div data-sources="" className="mt-3">
      <button
        type="button"
        aria-expanded={open}
        aria-controls={open ? id : undefined}
        className="-ml-1.5 flex min-h-8 items-center gap-2 rounded-md px-1.5 text-[13px] text-muted-foreground transition-colors hover:bg-accent/60 hover:text-foreground print:hidden pointer-coarse:min-h-10"
        onClick={() => setOpen(!open)}
      >
        <span className="flex -space-x-1">
          {hosts.slice(0, 4).map((url) => (
            <SiteIcon key={url} url={url} className="ring-2 ring-background" />
          ))}
        </span>
        {t("sources", { n: sources.length })}
        <OpenMark open={open} />
      </button>
      {open && <List id={id} sources={sources} />}
      <ol className="hidden list-none pl-0! text-xs print:block">
        {sources.map(({ number, title, url }) => (
          <li key={number}>{`[${number}] ${[title, url].filter(Boolean).join(", ")}`}</li>
        ))}
      </ol>
    </div>
  );
}

function List({ id, sources }: { id: string; sources: readonly Source[] }) {
  const t = useT("web");
  const place = usePlace();
  const threadId = place?.threadId ?? "";
  const { data: pages = [] } = useQuery({ ...pagesQuery(threadId), enabled: threadId !== "" });
  return (
    <ol
      id={id}
      className="mt-1 flex animate-in list-none flex-col rounded-xl border p-1! duration-150 fade-in-0 motion-reduce:animate-none print:hidden"
    >
      {sources.map((source) => {
        const page = keptPage(source, pages);
        const path = page?.path ?? source.kept;
        const title = source.title || page?.title || source.url;
        const shown = (
          <>
            <SiteIcon url={source.url} />
            <span className="min-w-0 flex-1">
              <span className="line-clamp-2 font-medium break-words text-foreground">{title}</span>
              <span className="block truncate text-xs text-muted-foreground">{hostOf(source.url)}</span>
            </span>
          </>
        );
        const row =
          "flex min-w-0 flex-1 items-center gap-2.5 rounded-md px-2 py-1.5 text-left transition-colors hover:bg-accent/60";
        return (
          <li key={source.number} className="flex items-center gap-1 text-[13px] leading-5">
            <span className="w-6 shrink-0 text-right text-xs text-muted-foreground tabular-nums">
              {source.number}
            </span>
            {path && place ? (
              <button
                type="button"
                title={t("openAsRead")}
                className={row}
                onClick={() => place.openFile(path)}
              >
                {shown}
              </button>
            ) : (
              <span className={row}>{shown}</span>
            )}
            <a
              href={source.url}
              target="_blank"
              rel="noopener noreferrer nofollow"
              title={source.url}
              aria-label={`${t("visit")}: ${title}`}
              className="flex size-8 shrink-0 items-center justify-center rounded-md text-muted-foreground transition-colors hover:bg-accent/60 hover:text-foreground pointer-coarse:size-10"
            >
              <ArrowUpRight aria-hidden className="size-4" />
            </a>
          </li>
        );
      })}
    </ol>
  );
}
