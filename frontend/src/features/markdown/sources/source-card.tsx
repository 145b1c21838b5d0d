"use client";
import { useQuery } from "@tanstack/react-query";
import { ArrowUpRight, FileText } from "lucide-react";
import { useFormatter } from "use-intl";
import { useT } from "@/i18n";
import { Button } from "@/ui/button";
import { Spinner } from "@/ui/spinner";
import type { Source } from "./citations";
import { keptPage, pagesQuery, textQuery } from "./pages";
import { passageOf } from "./passage";
import { usePlace } from "../place";
import { SiteName } from "./site-name";

interface Props {
  source: Source;
  /** Statement that the source supports. */
  statement: string;
  onDone: () => void;
}

/** A source, the passage that supports the statement, and links to read on. */
export default function SourceCard({ source, statement, onDone }: Props) {
  const t = useT("web");
  const format = useFormatter();
  const place = usePlace();
  const threadId = place?.threadId ?? "";
  const { data: pages, isPending } = useQuery({ ...pagesQuery(threadId), enabled: threadId !== "" });
  const page = pages ? keptPage(source, pages) : null;
  const path = page?.path ?? source.kept;
  const title = source.title || page?.title || source.url;
  return (
    <div className="flex flex-col gap-2.5">
      <div className="flex items-center justify-between gap-3">
        <SiteName url={source.url} />
        <span className="shrink-0 text-xs text-muted-foreground tabular-nums">
          {page
            ? t("readOn", { date: format.dateTime(new Date(page.read_at), { dateStyle: "medium" }) })
            : t("source", { n: source.number })}
        </span>
      </div>
      <p className="line-clamp-3 text-sm leading-snug font-semibold break-words">{title}</p>
      {threadId && isPending ? (
        <Spinner className="mx-auto my-11" />
      ) : path?.endsWith(".md") ? (
        <Excerpt threadId={threadId} path={path} statement={statement} />
      ) : (
        <p className="text-[13px] text-muted-foreground">{t(path ? "isFile" : "notRead")}</p>
      )}
      <div className="mt-0.5 flex flex-wrap gap-2">
        {path && place && (
          <Button
            size="xs"
            variant="secondary"
            onClick={() => {
              onDone();
              place.openFile(path);
            }}
          >
            <FileText aria-hidden />
            {t("openAsRead")}
          </Button>
        )}
        <Button size="xs" variant="ghost" asChild>
          <a href={source.url} target="_blank" rel="noopener noreferrer nofollow" title={source.url}>
            {t("visit")}
            <ArrowUpRight aria-hidden />
          </a>
        </Button>
      </div>
    </div>
  );
}

function Excerpt({ threadId, path, statement }: { threadId: string; path: string; statement: string }) {
  const t = useT("web");
  const { data, isPending } = useQuery(textQuery(threadId, path));
  if (isPending) return <Spinner className="mx-auto my-11" />;
  if (data === undefined) return <p className="text-[13px] text-muted-foreground">{t("gone")}</p>;
  const { before, marked, after } = passageOf(data, statement);
  return (
    <blockquote className="max-h-44 overflow-y-auto border-l-2 border-primary/40 pl-3 text-[13px] leading-relaxed break-words text-muted-foreground">
      {before} {marked && <mark className="rounded-sm bg-primary-soft px-0.5 text-foreground">{marked}</mark>}{" "}
      {after}
    </blockquote>
  );
}
