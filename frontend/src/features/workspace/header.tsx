"use client";
import { Files, Menu, Search, SquarePen } from "lucide-react";
import { Suspense } from "react";
import { ChatMarks, ContextGauge, useCost, useSession } from "@/features/chat";
import { WaitingButton } from "@/features/decisions";
import { useT } from "@/i18n";
import { findInChat } from "@/lib/compose";
import { formatTokens } from "@/lib/format";
import { usePanel } from "@/lib/route";
import { SHORTCUTS } from "@/lib/shortcuts";
import { startChat } from "@/lib/start-chat";
import { Badge } from "@/ui/badge";
import { IconButton } from "@/ui/icon-button";
import { SimpleTooltip } from "@/ui/tooltip";

export function Header({ onMenu }: { onMenu: () => void }) {
  const t = useT("common");
  const { threadId, title, files, phase } = useSession();
  const isThere = threadId !== null && phase !== "missing";
  const panel = usePanel();
  const areFiles = panel.open !== null;
  return (
    <header className="flex h-12 shrink-0 items-center gap-2 px-2 sm:px-4">
      <IconButton label={t("menu")} className="md:hidden" onClick={onMenu}>
        <Menu />
      </IconButton>
      <div className="contents md:hidden">
        <Suspense>
          <WaitingButton small />
        </Suspense>
      </div>
      <h1
        className="min-w-0 flex-1 truncate font-sans text-sm font-medium tracking-normal"
        title={title ?? undefined}
      >
        {isThere ? (title ?? t("untitled")) : <span className="sr-only">{t("newChat")}</span>}
      </h1>
      <Cost />
      {phase !== "missing" && (
        <Suspense>
          <ChatMarks threadId={threadId} />
        </Suspense>
      )}
      <ContextGauge />
      {threadId !== null && (
        <IconButton label={t("newChat")} className="md:hidden" onClick={startChat}>
          <SquarePen />
        </IconButton>
      )}
      {isThere && (
        <IconButton
          label={t("shortcut.find")}
          className="hidden pointer-coarse:inline-flex"
          onClick={findInChat}
        >
          <Search />
        </IconButton>
      )}
      {isThere && (
        <IconButton
          label={files.length > 0 ? t("filesCount", { n: files.length }) : t("files")}
          shortcut={SHORTCUTS.files}
          aria-pressed={areFiles}
          onClick={() => panel.set(areFiles ? null : "")}
          className="relative"
        >
          <Files />
          {files.length > 0 && (
            <Badge className="absolute -top-0.5 -right-0.5 h-4 min-w-4 px-1 text-[10px]" aria-hidden>
              {files.length}
            </Badge>
          )}
        </IconButton>
      )}
    </header>
  );
}

/** Cost of the conversation so far. */
function Cost() {
  const t = useT("common");
  const { usage } = useSession();
  const cost = useCost();
  if (!usage?.total) return null;
  const label = t("threadUsage", { input: formatTokens(usage.input), output: formatTokens(usage.output) });
  return (
    <SimpleTooltip label={label}>
      <span tabIndex={0} className="hidden rounded-sm text-xs text-muted-foreground tabular-nums sm:inline">
        {usage.cost ? cost(usage.cost) : t("tokens", { count: formatTokens(usage.total) })}
      </span>
    </SimpleTooltip>
  );
}
