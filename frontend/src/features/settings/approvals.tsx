"use client";
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { ShieldCheck } from "lucide-react";
import Link from "next/link";
import { toast } from "@/ui/toast";
import { useLocale, useT } from "@/i18n";
import { formatRelativeTime } from "@/lib/format";
import { keys } from "@/lib/keys";
import { threadPath } from "@/lib/route";
import { Button } from "@/ui/button";
import { EmptyState } from "@/ui/empty-state";
import { grants, revokeGrant, type Grant } from "./api";
import { Group, Panel, Waiting } from "./parts";

/** What one has allowed without being asked again. */
export default function ApprovalsSection() {
  const t = useT("settings.approvals");
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
    <Group>
      {!data && <Waiting error={error} retry={refetch} />}
      {data?.length === 0 && (
        <Panel>
          <EmptyState icon={<ShieldCheck />} title={t("none")} text={t("noneText")} />
        </Panel>
      )}
      {data && data.length > 0 && (
        <Panel role="list">
          {data.map((grant) => (
            <GrantRow key={grant.id} grant={grant} onRevoke={() => void revoke(grant)} />
          ))}
        </Panel>
      )}
    </Group>
  );
}

function GrantRow({ grant, onRevoke }: { grant: Grant; onRevoke: () => void }) {
  const t = useT("settings.approvals");
  const [locale] = useLocale();
  const patterns = Object.entries(grant.pattern ?? {}).map(([name, glob]) => `${name}: ${glob}`);
  return (
    <div role="listitem" className="flex items-center gap-4 px-4 py-3 sm:px-5">
      <div className="min-w-0 flex-1">
        <p className="flex flex-wrap gap-x-2 font-mono text-sm break-all">
          <span className="font-medium">{grant.tool}</span>
          {patterns.length > 0 && <span className="text-muted-foreground">{patterns.join(", ")}</span>}
        </p>
        <p className="mt-1 text-xs leading-relaxed text-muted-foreground">
          {grant.thread_id ? (
            <Link href={threadPath(grant.thread_id)} className="underline underline-offset-2">
              {t("inChat")}
            </Link>
          ) : (
            t("everywhere")
          )}
          {grant.agent && ` · ${grant.agent}`} · {formatRelativeTime(grant.created_at, locale)}
        </p>
      </div>
      <Button variant="outline" size="sm" onClick={onRevoke} aria-label={t("revokeOf", { name: grant.tool })}>
        {t("revoke")}
      </Button>
    </div>
  );
}
