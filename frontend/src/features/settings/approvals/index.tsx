"use client";
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { ShieldCheck } from "lucide-react";
import Link from "next/link";
import { useLocale, useT } from "@/i18n";
import { formatRelativeTime } from "@/lib/format";
import { cn } from "@/lib/cn";
import { keys } from "@/lib/keys";
import { marked } from "@/lib/marks";
import { threadPath } from "@/lib/route";
import { Badge } from "@/ui/badge";
import { Button } from "@/ui/button";
import { EmptyState } from "@/ui/empty-state";
import { toast } from "@/ui/toast";
import { grants, revokeGrant, titlesOf, type Grant } from "./api";
import { Group, Panel, Waiting } from "../parts";

/** List of calls that the person has allowed without another question. */
export default function ApprovalsSection() {
  const t = useT("approvals");
  const queries = useQueryClient();
  const { data, error, refetch } = useQuery({ queryKey: keys.grants, queryFn: grants });
  const revoke = async (grant: Grant) => {
    try {
      await revokeGrant(grant.id);
      toast.success(t("revoked"));
    } catch (problem) {
      toast.error((problem as Error).message);
    }
    await queries.invalidateQueries({ queryKey: keys.grants });
  };
  return (
    <>
      {!data && <Waiting error={error} retry={refetch} />}
      {data?.length === 0 && (
        <Panel>
          <EmptyState icon={<ShieldCheck />} title={t("none")} text={t("noneText")} />
        </Panel>
      )}
      <Grants title={t("everywhere")} grants={data?.filter((one) => !one.thread_id)} onRevoke={revoke} />
      <Grants title={t("inChats")} grants={data?.filter((one) => one.thread_id)} onRevoke={revoke} />
    </>
  );
}

interface GrantsProps {
  title: string;
  grants?: readonly Grant[];
  onRevoke: (grant: Grant) => Promise<void>;
}

function Grants({ title, grants, onRevoke }: GrantsProps) {
  const ids = [...new Set(grants?.flatMap(({ thread_id: id }) => (id ? [id] : [])))].slice(0, MOST_TITLES);
  const { data: titles } = useQuery({
    queryKey: [...keys.grants, "titles", ...ids],
    queryFn: () => titlesOf(ids),
    enabled: ids.length > 0,
  });
  if (!grants?.length) return null;
  return (
    <Group title={title}>
      <Panel role="list" aria-label={title}>
        {grants.map((grant) => (
          <GrantRow
            key={grant.id}
            grant={grant}
            chat={titles?.[grant.thread_id ?? ""]}
            onRevoke={() => void onRevoke(grant)}
          />
        ))}
      </Panel>
    </Group>
  );
}

const MOST_TITLES = 100;

interface GrantRowProps {
  grant: Grant;
  /** The title of its chat. */
  chat?: string;
  onRevoke: () => void;
}

function GrantRow({ grant, chat, onRevoke }: GrantRowProps) {
  const t = useT("approvals");
  const [locale] = useLocale();
  const patterns = Object.entries(grant.pattern ?? {}).map(
    ([name, glob]) => `${name}: ${marked(glob ?? t("anyValue"))}`,
  );
  const { destination } = grant;
  const expired = destination === null && grant.digest === null;
  const covers = patterns.length ? t("onlyLike", { pattern: patterns.join(", ") }) : t("everyCall");
  const name = destination ?? grant.tool;
  return (
    <div role="listitem" className="flex items-center gap-4 px-4 py-3 sm:px-5">
      <div className="min-w-0 flex-1">
        <p className="flex flex-wrap items-baseline gap-x-2 text-sm [overflow-wrap:anywhere]">
          {destination !== null ? (
            <span className="font-medium">{t("mayReach", { host: marked(destination) })}</span>
          ) : (
            <>
              <span className={cn("font-mono font-medium", expired && "text-muted-foreground line-through")}>
                {grant.tool}
              </span>
              {expired && <Badge variant="warning">{t("expired")}</Badge>}
              <span className="text-[13px] text-muted-foreground">{covers}</span>
            </>
          )}
        </p>
        {expired && <p className="mt-1 text-xs leading-relaxed text-muted-foreground">{t("expiredText")}</p>}
        <p className="mt-1 text-xs leading-relaxed text-muted-foreground">
          {grant.thread_id && (
            <>
              <Link href={threadPath(grant.thread_id)} className="underline underline-offset-2">
                {chat ?? t("inChat")}
              </Link>
              {" · "}
            </>
          )}
          {grant.agent && `${grant.agent} · `}
          {t("given", { when: formatRelativeTime(grant.created_at, locale) })}
        </p>
      </div>
      <Button variant="outline" size="sm" onClick={onRevoke} aria-label={t("revokeOf", { name })}>
        {t("revoke")}
      </Button>
    </div>
  );
}
