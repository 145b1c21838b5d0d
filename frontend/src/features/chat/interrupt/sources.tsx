"use client";
import { BookOpen, Brain, FileText, Globe, Plug, type LucideIcon } from "lucide-react";
import { useT } from "@/i18n";
import { ROOT } from "@/lib/files";
import { hostOf, isWeb } from "@/lib/web";
import type { Interrupt } from "../session";
import { PathButton } from "../tool-card/blocks";

type Source = Interrupt["calls"][number]["sources"][number];

const ICONS: Record<Source["kind"], LucideIcon> = {
  page: Globe,
  server: Plug,
  file: FileText,
  tool: BookOpen,
  memory: Brain,
};
const SHOWN = 6;

/** Why one is asked: which pages, servers and files brought text from outside, the newest first. */
export function Sources({ sources }: { sources: readonly Source[] }) {
  const t = useT("decisions");
  const shown = sources.slice(-SHOWN).reverse();
  const more = sources.length - shown.length;
  return (
    <div className="flex flex-wrap items-center gap-x-3 gap-y-1 text-xs text-muted-foreground">
      <span>{t("sources")}</span>
      <ul className="contents">
        {shown.map((source) => {
          const Icon = ICONS[source.kind] ?? BookOpen;
          return (
            <li key={source.kind + source.name} className="flex max-w-full min-w-0 items-center gap-1">
              <Icon aria-hidden className="size-3.5 shrink-0" />
              <Name source={source} />
            </li>
          );
        })}
      </ul>
      {more > 0 && <span>{t("moreSources", { n: more })}</span>}
    </div>
  );
}

function Name({ source: { kind, name } }: { source: Source }) {
  const t = useT("decisions");
  if (kind === "memory") return t("memorySource");
  if (kind === "file") return <PathButton path={`${ROOT}uploads/${name}`}>{name}</PathButton>;
  if (kind !== "page" || !isWeb(name)) return <span className="truncate">{name}</span>;
  return (
    <a
      href={name}
      title={name}
      target="_blank"
      rel="noopener noreferrer nofollow"
      className="truncate underline decoration-border underline-offset-3 hover:decoration-current"
    >
      {hostOf(name)}
    </a>
  );
}
