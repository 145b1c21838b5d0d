"use client";
import {
  AppWindow,
  ChartColumn,
  FileText,
  FolderOpen,
  type LucideIcon,
  Play,
  Plug,
  SquareTerminal,
  Workflow,
} from "lucide-react";
import Link from "next/link";
import { useAccount } from "@/features/auth";
import { useT } from "@/i18n";
import { sayInComposer } from "@/lib/compose";
import { isOnlyDemo, useModels } from "@/lib/models";
import { settingsPath } from "@/lib/route";
import { Button } from "@/ui/button";
import { Logo } from "@/ui/logo";

const STARTERS = [
  ["data", ChartColumn],
  ["page", AppWindow],
  ["tool", SquareTerminal],
  ["deck", FileText],
  ["diagram", Workflow],
  ["files", FolderOpen],
] as const satisfies readonly (readonly [string, LucideIcon])[];

interface WelcomeProps {
  /** The person chose a task: its text goes into the message field. */
  onPick: (text: string) => void;
}

/** Before the first message: what this is for, and tasks to begin with. */
export function Welcome({ onPick }: WelcomeProps) {
  const t = useT("chat.welcome");
  const isDemo = isOnlyDemo(useModels().data?.models ?? []);
  return (
    <div className="mx-auto flex min-h-full w-full max-w-3xl flex-col justify-center gap-7 px-4 py-8 sm:px-6">
      <div className="flex flex-col gap-2 text-center">
        <Logo className="mx-auto mb-2 size-11 text-primary" />
        <h1 className="text-[32px] leading-tight font-semibold text-balance">{t("title")}</h1>
        <p className="mx-auto max-w-xl text-[15px] leading-relaxed text-pretty text-muted-foreground">
          {t("text")}
        </p>
      </div>
      {isDemo ? <Demo /> : <Starters onPick={onPick} />}
    </div>
  );
}

function Starters({ onPick }: WelcomeProps) {
  const t = useT("chat.welcome");
  return (
    <ul aria-label={t("starters")} className="grid grid-cols-2 gap-2 sm:grid-cols-3">
      {STARTERS.map(([name, Icon]) => (
        <li key={name} className="flex">
          <button
            type="button"
            className="group flex w-full flex-col gap-2 rounded-xl border bg-card p-3.5 text-left transition-colors hover:border-primary/40 hover:bg-primary-soft/50"
            onClick={() => onPick(t(`task.${name}Prompt`))}
          >
            <Icon aria-hidden className="size-4.5 text-primary" />
            <span className="flex flex-col gap-0.5">
              <span className="text-sm font-medium">{t(`task.${name}`)}</span>
              <span className="text-xs leading-5 text-muted-foreground">{t(`task.${name}Text`)}</span>
            </span>
          </button>
        </li>
      ))}
    </ul>
  );
}

const code = (text: React.ReactNode) => (
  <code className="rounded bg-muted px-1 py-0.5 font-mono text-[0.9em] break-words">{text}</code>
);

/** No model is connected: says so, shows what can be seen anyway, and how to connect one. */
function Demo() {
  const t = useT("chat.welcome");
  const isAdmin = useAccount().data?.system_role === "admin";
  return (
    <section className="rounded-2xl border bg-card p-5">
      <h2 className="flex items-center gap-2 text-sm font-medium">
        <Plug aria-hidden className="size-4 text-warning" />
        {t("demoTitle")}
      </h2>
      <p className="mt-1 text-sm leading-relaxed text-muted-foreground">{t("demoText")}</p>
      <div className="mt-3 flex flex-wrap gap-2">
        {isAdmin && (
          <Button asChild>
            <Link href={settingsPath("models")}>{t("demoConnect")}</Link>
          </Button>
        )}
        <Button variant={isAdmin ? "outline" : "default"} onClick={() => sayInComposer(t("demoPrompt"))}>
          <Play aria-hidden />
          {t("demoTry")}
        </Button>
      </div>
      {!isAdmin && (
        <div className="mt-4 border-t pt-4 text-sm leading-relaxed">
          <p className="font-medium">{t("demoHow")}</p>
          <ol className="mt-1.5 flex list-decimal flex-col gap-1 pl-5 text-muted-foreground">
            <li>{t.rich("demoKey", { code })}</li>
            <li>{t("demoLocal")}</li>
          </ol>
        </div>
      )}
    </section>
  );
}
