"use client";
import { ChevronRight, CornerDownRight, RotateCw, TriangleAlert } from "lucide-react";
import Link from "next/link";
import { useState } from "react";
import { LateTexts, serverTexts, useT, type Messages } from "@/i18n";
import { useModels } from "@/lib/models";
import { settingsPath } from "@/lib/route";
import { cn } from "@/lib/cn";
import { Button } from "@/ui/button";
import { DropdownMenu, DropdownMenuContent, DropdownMenuItem, DropdownMenuTrigger } from "@/ui/dropdown-menu";
import { useChat } from "./chat-context";
import { TimelineButton } from "./marks/timeline-button";
import type { Turn } from "./thread/turns";
import { useAction } from "./use-action";

type Kind = keyof Messages["server"]["failure"]["title"];

/** Kinds whose server-side name is that of an exception. */
const NAMES: Record<string, Kind> = { graphrecursionerror: "recursion" };
const SETTINGS = new Set<Kind>(["auth", "network", "model_not_found", "quota", "circuit_open"]);

interface RunErrorProps {
  turn: Turn;
  error: NonNullable<Turn["error"]>;
  busy: boolean;
}

/** A short description of the failure, and ways to continue. */
export default function RunError(props: RunErrorProps) {
  return (
    <LateTexts of={serverTexts}>
      <Failed {...props} />
    </LateTexts>
  );
}

function Failed({ turn, error, busy }: RunErrorProps) {
  const t = useT("server.failure");
  const failed = useT("chat.question");
  const { actions } = useChat();
  const action = useAction();
  const [open, setOpen] = useState(false);
  const named = NAMES[error.name.toLowerCase()] ?? error.name.toLowerCase();
  const kind = t.has(`title.${named as Kind}`) ? (named as Kind) : "generic";
  const disabled = busy || action.pending;
  return (
    <section
      role="group"
      aria-label={t(`title.${kind}`)}
      className="my-2 rounded-2xl bg-destructive-soft p-4"
    >
      <div className="flex items-start gap-2.5">
        <TriangleAlert aria-hidden className="mt-0.5 size-4 shrink-0 text-destructive" />
        <div className="min-w-0 flex-1">
          <p className="text-sm font-medium">{t(`title.${kind}`)}</p>
          <p className="mt-0.5 text-sm leading-relaxed text-foreground/80">{t(`text.${kind}`)}</p>
        </div>
      </div>
      <div className="mt-3 flex flex-wrap items-center gap-2 pl-6.5">
        {kind === "broken_off" && turn.answer && (
          <Button
            size="sm"
            disabled={disabled}
            onClick={() => action.run(() => actions.send(t("goOnMessage")))}
          >
            <CornerDownRight aria-hidden />
            {t("goOn")}
          </Button>
        )}
        <Button size="sm" disabled={disabled} onClick={() => action.run(() => actions.retry(turn.id))}>
          <RotateCw aria-hidden />
          {t("retry")}
        </Button>
        <OtherModels disabled={disabled} onPick={(name) => action.run(() => actions.retry(turn.id, name))} />
        {SETTINGS.has(kind) && (
          <Button asChild variant="ghost" size="sm">
            <Link href={settingsPath("models")}>{t("settings")}</Link>
          </Button>
        )}
        <TimelineButton runId={turn.runId} />
        {error.message && (
          <Button
            variant="ghost"
            size="sm"
            aria-expanded={open}
            className="text-muted-foreground"
            onClick={() => setOpen(!open)}
          >
            {t("details")}
            <ChevronRight aria-hidden className={cn("transition-transform", open && "rotate-90")} />
          </Button>
        )}
      </div>
      {open && (
        <pre className="mt-3 max-h-60 overflow-auto rounded-lg bg-background/70 p-3 font-mono text-xs leading-5 break-words whitespace-pre-wrap">
          {error.message}
        </pre>
      )}
      {action.error && (
        <p className="mt-2 pl-6.5 text-xs text-destructive">{failed("failed", { message: action.error })}</p>
      )}
    </section>
  );
}

function OtherModels({ disabled, onPick }: { disabled: boolean; onPick: (name: string) => void }) {
  const t = useT("server.failure");
  const { data } = useModels();
  const usable = data?.models.filter((model) => !model.problem) ?? [];
  if (usable.length < 2) return null;
  return (
    <DropdownMenu>
      <DropdownMenuTrigger asChild>
        <Button variant="outline" size="sm" disabled={disabled}>
          {t("changeModel")}
        </Button>
      </DropdownMenuTrigger>
      <DropdownMenuContent align="start">
        {usable.map((model) => (
          <DropdownMenuItem key={model.name} onSelect={() => onPick(model.name)}>
            {model.display_name}
          </DropdownMenuItem>
        ))}
      </DropdownMenuContent>
    </DropdownMenu>
  );
}
