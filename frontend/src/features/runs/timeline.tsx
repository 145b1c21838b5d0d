"use client";
import { useQuery } from "@tanstack/react-query";
import { Download, X } from "lucide-react";
import { useCost } from "@/features/chat";
import { LateTexts, useLocale, useT, type LateMessages } from "@/i18n";
import { threadApi, type Timeline as Found } from "@/lib/api";
import { showStep } from "@/lib/compose";
import { formatBrief, formatTokens } from "@/lib/format";
import { http } from "@/lib/http";
import { keys } from "@/lib/keys";
import { useMedia } from "@/lib/wide-screen";
import { DropdownMenu, DropdownMenuContent, DropdownMenuItem, DropdownMenuTrigger } from "@/ui/dropdown-menu";
import { ErrorState } from "@/ui/error-state";
import { IconButton } from "@/ui/icon-button";
import { Spinner } from "@/ui/spinner";
import { toast } from "@/ui/toast";
import { SpanTree } from "./span-tree";
import { placesOf, totalsOf, type Row } from "./spans";

const TEXTS: LateMessages = { en: () => import("./en"), zh: () => import("./zh") };

/** Milliseconds between requests for an active run. */
const EVERY = 1000;

interface TimelineProps {
  threadId: string;
  /** The run with which a turn began. */
  runId: string;
  onClose: () => void;
  /** A step was brought into sight in the conversation. */
  onShown: () => void;
}

/** Timeline of a turn's work and its cost. Grows during the run; fills its parent. */
export default function Timeline(props: TimelineProps) {
  useTimeline(props); // while the texts are on their way
  return (
    <LateTexts of={TEXTS} fallback={<Waiting />}>
      <Panel {...props} />
    </LateTexts>
  );
}

const useTimeline = ({ threadId, runId }: Pick<TimelineProps, "threadId" | "runId">) =>
  useQuery({
    queryKey: keys.timeline(threadId, runId),
    queryFn: () => http.get<Found>(addressOf(threadId, runId)),
    refetchInterval: ({ state }) => (goesOn(state.data) ? EVERY : false),
  });

const addressOf = (threadId: string, runId: string) =>
  threadApi(threadId, `/runs/${encodeURIComponent(runId)}/timeline`);

const goesOn = (found: Found | undefined) => found?.status === "running" || found?.status === "pending";

function Panel({ threadId, runId, onClose, onShown }: TimelineProps) {
  const t = useT("runs");
  const title = useT("common")("timeline");
  const compact = useMedia("(max-width: 40rem)");
  const { data, error, refetch } = useTimeline({ threadId, runId });
  const show = ({ span }: Row) => {
    if (showStep(placesOf(span, data?.spans ?? []))) onShown();
    else toast.error(t("notInChat"));
  };
  return (
    <section aria-label={title} className="flex h-full min-h-0 min-w-0 flex-col bg-background">
      <header className="flex h-12 shrink-0 items-center gap-1 border-b pr-2 pl-4">
        <h2 className="min-w-0 flex-1 truncate font-sans text-sm font-medium tracking-normal">{title}</h2>
        <Export address={addressOf(threadId, runId)} name={`run-${runId}`} />
        <IconButton label={t("close")} className="text-muted-foreground" onClick={onClose}>
          <X aria-hidden />
        </IconButton>
      </header>
      {error && <ErrorState error={error} retry={() => void refetch()} />}
      {!error && !data && <Waiting />}
      {!error && data && (
        <>
          <Totals found={data} />
          {data.forgotten && (
            <p className="border-b px-4 py-2 text-xs text-muted-foreground">{t("forgotten")}</p>
          )}
          {data.truncated && (
            <p className="border-b bg-warning-soft px-4 py-2 text-xs text-warning">
              {t("truncated", { n: data.spans.length })}
            </p>
          )}
          <SpanTree timeline={data} compact={compact} onShow={show} />
        </>
      )}
    </section>
  );
}

function Totals({ found }: { found: Found }) {
  const t = useT("runs");
  const [locale] = useLocale();
  const cost = useCost();
  const { steps, input, cached, output } = totalsOf(found.spans);
  const percent = new Intl.NumberFormat(locale, { style: "percent" }).format(cached / (input || 1));
  const parts = [
    formatBrief(found.elapsed_ms, locale),
    t("total", { n: steps }),
    input + output > 0 && t("tokens", { input: formatTokens(input), output: formatTokens(output) }),
    cached > 0 && t("cached", { percent }),
    found.cost !== null && cost(found.cost),
  ];
  return (
    <p className="shrink-0 border-b px-4 py-2 text-xs leading-5 text-muted-foreground tabular-nums">
      {parts.filter(Boolean).join(" · ")}
    </p>
  );
}

function Export({ address, name }: { address: string; name: string }) {
  const t = useT("runs");
  return (
    <DropdownMenu>
      <DropdownMenuTrigger asChild>
        <IconButton label={t("export")} className="text-muted-foreground">
          <Download aria-hidden />
        </IconButton>
      </DropdownMenuTrigger>
      <DropdownMenuContent align="end">
        <DropdownMenuItem asChild>
          <a href={address} download={`${name}.json`}>
            {t("exportJson")}
          </a>
        </DropdownMenuItem>
        <DropdownMenuItem asChild>
          <a href={`${address}?format=otlp`} download={`${name}.otlp.json`}>
            {t("exportOtlp")}
          </a>
        </DropdownMenuItem>
      </DropdownMenuContent>
    </DropdownMenu>
  );
}

function Waiting() {
  return (
    <div className="flex flex-1 items-center justify-center text-muted-foreground">
      <Spinner />
    </div>
  );
}
