"use client";
import { ChartGantt } from "lucide-react";
import { useT } from "@/i18n";
import { IconButton } from "@/ui/icon-button";
import { useChat } from "../chat-context";

/** Opens the timeline of a turn, by the run that began it. */
export function TimelineButton({ runId }: { runId: string | null }) {
  const t = useT("common");
  const { actions } = useChat();
  if (!runId) return null;
  return (
    <IconButton
      label={t("timeline")}
      size="icon-xs"
      className="text-muted-foreground"
      onClick={() => actions.openRun(runId)}
    >
      <ChartGantt aria-hidden />
    </IconButton>
  );
}
