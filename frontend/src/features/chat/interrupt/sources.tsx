"use client";
import {
  BookOpen,
  Bot,
  FileText,
  Folder,
  Globe,
  MessageSquare,
  Plug,
  ShieldCheck,
  SquareTerminal,
  type LucideIcon,
} from "lucide-react";
import { useState } from "react";
import { useT } from "@/i18n";
import { threadApi } from "@/lib/api";
import { ROOT } from "@/lib/files";
import { http } from "@/lib/http";
import { marked } from "@/lib/marks";
import { hostOf, isWeb } from "@/lib/web";
import { ConfirmDialog } from "@/ui/confirm-dialog";
import { IconButton } from "@/ui/icon-button";
import { toast } from "@/ui/toast";
import { useChat } from "../chat-context";
import type { Interrupt } from "../thread/session";
import { PathButton } from "../tool-card/blocks";

type Source = Interrupt["calls"][number]["sources"][number];

const ICONS: Partial<Record<Source["kind"], LucideIcon>> = {
  page: Globe,
  server: Plug,
  upload: FileText,
  client: MessageSquare,
  channel: MessageSquare,
  chat: MessageSquare,
  acp: Bot,
  mount: Folder,
  project: Folder,
  command: SquareTerminal,
};
const SHOWN = 6;
const keyOf = ({ kind, name }: Source) => `${kind} ${name}`;

/** Sources of foreign text that caused the question, the newest first. Each can be trusted. */
export function Sources({ sources: all }: { sources: readonly Source[] }) {
  const t = useT("decisions");
  const { threadId } = useChat();
  const [whole, setWhole] = useState(false);
  const [asked, setAsked] = useState<Source | null>(null);
  const [trusted, setTrusted] = useState<ReadonlySet<string>>(new Set());
  const sources = [...new Map(all.map((one) => [keyOf(one), one])).values()];
  const shown = (whole ? sources : sources.slice(-SHOWN)).toReversed();
  const more = sources.length - shown.length;
  const nameIn = useSourceName();
  const trust = async ({ kind, name }: Source) => {
    try {
      await http.post(threadApi(threadId!, "/sources/trust"), { kind, name });
    } catch (problem) {
      toast.error((problem as Error).message);
      throw problem;
    }
    setTrusted((known) => new Set([...known, keyOf({ kind, name })]));
  };
  return (
    <div className="flex flex-wrap items-center gap-x-3 gap-y-1 text-xs text-muted-foreground">
      <span>{t("sources")}</span>
      <ul className="contents">
        {shown.map((source) => {
          const isTrusted = trusted.has(keyOf(source));
          const Icon = isTrusted ? ShieldCheck : (ICONS[source.kind] ?? BookOpen);
          return (
            <li key={keyOf(source)} className="flex max-w-full min-w-0 items-center gap-1">
              <Icon aria-hidden className="size-3.5 shrink-0" />
              <Name source={source} />
              {isTrusted && ` ${t("trust.done")}`}
              {threadId && !isTrusted && (
                <IconButton
                  label={t("trust.button", { name: nameIn(source) })}
                  className="size-6 text-muted-foreground pointer-coarse:size-9"
                  onClick={() => setAsked(source)}
                >
                  <ShieldCheck aria-hidden className="size-3.5" />
                </IconButton>
              )}
            </li>
          );
        })}
      </ul>
      {more > 0 && (
        <button
          type="button"
          className="rounded-sm underline decoration-border underline-offset-3 hover:decoration-current"
          onClick={() => setWhole(true)}
        >
          {t("moreSources", { n: more })}
        </button>
      )}
      {asked && (
        <ConfirmDialog
          open
          onOpenChange={(open) => !open && setAsked(null)}
          title={t("trust.title", { name: nameIn(asked) })}
          text={t(asked.kind === "server" ? "trust.serverText" : "trust.text")}
          confirm={t("trust.confirm")}
          onConfirm={() => trust(asked)}
        />
      )}
    </div>
  );
}

/** Display name of a source. */
function useSourceName() {
  const t = useT("decisions.source");
  return ({ kind, name: given }: Source): string => {
    const name = marked(given);
    if (kind === "page") return isWeb(given) ? hostOf(given) : name;
    if (kind === "client" || kind === "chat" || kind === "command") return t(kind);
    if (kind === "channel" || kind === "acp" || kind === "mount" || kind === "project")
      return t(kind, { name });
    return name || kind;
  };
}

function Name({ source }: { source: Source }) {
  const text = useSourceName()(source);
  const { kind, name } = source;
  if (kind === "upload") return <PathButton path={`${ROOT}uploads/${name}`}>{text}</PathButton>;
  if (kind !== "page" || !isWeb(name)) return <span className="[overflow-wrap:anywhere]">{text}</span>;
  return (
    <a
      href={name}
      title={name}
      target="_blank"
      rel="noopener noreferrer nofollow"
      className="truncate underline decoration-border underline-offset-3 hover:decoration-current"
    >
      {text}
    </a>
  );
}
