"use client";
import { CornerDownRight, X } from "lucide-react";
import { useState } from "react";
import { toast } from "@/ui/toast";
import { useSession, type Queued } from "@/features/chat";
import { useT } from "@/i18n";
import { Button } from "@/ui/button";
import { IconButton } from "@/ui/icon-button";
import { SimpleTooltip } from "@/ui/tooltip";
import { steered } from "./steer";

/** Queued messages: each can be taken back, or handed to the active run at once. */
export default function QueueList() {
  const t = useT("composer");
  const { queued } = useSession();
  if (!queued.length) return null;
  const waiting = queued.filter(({ state }) => state !== "told").length;
  const label = waiting ? t("queued", { count: waiting }) : t("told");
  return (
    <section aria-label={label} className="mx-3 animate-rise rounded-t-xl border border-b-0 bg-muted/60">
      <p className="px-3 pt-2 text-xs text-muted-foreground">{label}</p>
      <ul className="max-h-40 overflow-y-auto p-1">
        {queued.map((one) => (
          <QueuedRow key={one.runId} queued={one} />
        ))}
      </ul>
    </section>
  );
}

function QueuedRow({ queued }: { queued: Queued }) {
  const t = useT("composer");
  const session = useSession();
  const [busy, setBusy] = useState(false);
  const act = async (work: () => Promise<void>) => {
    setBusy(true);
    try {
      await work();
    } catch (error) {
      toast.error(t("queuedFailed"), { description: (error as Error).message });
    }
    setBusy(false);
  };
  const now = async () => {
    if (!(await steered(session, queued.text))) return;
    await session.cancelQueued(queued.runId);
  };
  return (
    <li className="flex items-center gap-1 rounded-lg py-0.5 pr-1 pl-2 text-sm">
      <span className="min-w-0 flex-1 truncate" title={queued.text}>
        {queued.text}
      </span>
      {queued.state === "unsent" && (
        <span className="shrink-0 text-xs text-warning">{t("queuedOffline")}</span>
      )}
      {queued.state === "told" && (
        <span className="shrink-0 text-xs text-muted-foreground">{t("queuedTold")}</span>
      )}
      {queued.state === "queued" && (
        <SimpleTooltip label={t("queuedNowHint")}>
          <Button
            variant="ghost"
            size="xs"
            className="text-muted-foreground"
            disabled={busy}
            onClick={() => act(now)}
          >
            <CornerDownRight aria-hidden />
            {t("queuedNow")}
          </Button>
        </SimpleTooltip>
      )}
      {queued.state !== "told" && (
        <IconButton
          label={t("queuedCancel")}
          size="icon-xs"
          className="text-muted-foreground"
          disabled={busy}
          onClick={() => act(() => session.cancelQueued(queued.runId))}
        >
          <X aria-hidden />
        </IconButton>
      )}
    </li>
  );
}
