"use client";
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { KeyRound, Plus } from "lucide-react";
import { useState } from "react";
import { toast } from "@/ui/toast";
import { useAccount } from "@/features/auth";
import { useLocale, useT } from "@/i18n";
import { formatRelativeTime } from "@/lib/format";
import { keys } from "@/lib/keys";
import { Badge } from "@/ui/badge";
import { Button } from "@/ui/button";
import { ConfirmDialog } from "@/ui/dialog";
import { EmptyState } from "@/ui/empty-state";
import { revokeToken, tokens, type Token } from "./api";
import { Group, Note, Panel, Waiting } from "../parts";
import { TokenDialog } from "./token-dialog";

export default function TokensSection() {
  const t = useT("tokens");
  const { data: account } = useAccount();
  if (account?.email === null) return <Note>{t("local")}</Note>;
  return <TokenList />;
}

function TokenList() {
  const t = useT("tokens");
  const queries = useQueryClient();
  const { data, error, refetch } = useQuery({ queryKey: keys.tokens, queryFn: tokens });
  const [creating, setCreating] = useState(false);
  const [revoking, setRevoking] = useState<Token | null>(null);
  const changed = () => queries.invalidateQueries({ queryKey: keys.tokens });
  const revoke = async (token: Token) => {
    try {
      await revokeToken(token.id);
    } catch (problem) {
      toast.error((problem as Error).message);
      throw problem;
    }
    toast.success(t("revoked"));
    await changed();
  };
  const create = (
    <Button size="sm" onClick={() => setCreating(true)}>
      <Plus aria-hidden />
      {t("create")}
    </Button>
  );
  return (
    <Group action={data?.length ? <div className="ml-auto">{create}</div> : null}>
      {!data && <Waiting error={error} retry={refetch} />}
      {data?.length === 0 && (
        <Panel>
          <EmptyState icon={<KeyRound />} title={t("none")} text={t("noneText")} action={create} />
        </Panel>
      )}
      {data && data.length > 0 && (
        <Panel role="list">
          {data.map((token) => (
            <TokenRow key={token.id} token={token} onRevoke={() => setRevoking(token)} />
          ))}
        </Panel>
      )}
      <TokenDialog open={creating} onOpenChange={setCreating} onCreated={changed} />
      <ConfirmDialog
        open={revoking !== null}
        onOpenChange={(open) => !open && setRevoking(null)}
        title={t("revokeTitle", { name: revoking?.name ?? "" })}
        text={t("revokeText")}
        confirm={t("revoke")}
        destructive
        onConfirm={() => revoking && revoke(revoking)}
      />
    </Group>
  );
}

function TokenRow({ token, onRevoke }: { token: Token; onRevoke: () => void }) {
  const t = useT("tokens");
  const [locale] = useLocale();
  const when = (date: string) => formatRelativeTime(date, locale);
  const day = (date: string) => new Date(date).toLocaleDateString(locale, { dateStyle: "medium" });
  const [now] = useState(Date.now);
  const isOver = token.expires_at !== null && new Date(token.expires_at).getTime() < now;
  const end = token.expires_at
    ? t(isOver ? "expired" : "until", { date: day(token.expires_at) })
    : t("untilForever");
  return (
    <div role="listitem" className="flex items-center gap-4 px-4 py-3 sm:px-5">
      <div className="min-w-0 flex-1">
        <div className="flex flex-wrap items-center gap-x-2 gap-y-1">
          <span className="min-w-0 truncate font-medium">{token.name}</span>
          <code className="font-mono text-xs text-muted-foreground">{token.hint}…</code>
          {token.scopes.map((scope) => (
            <Badge key={scope} variant={scope === "admin" ? "warning" : "secondary"}>
              {t(`scope.${scope}`)}
            </Badge>
          ))}
        </div>
        <p className="mt-1 text-xs leading-relaxed text-muted-foreground">
          {t("since", { when: when(token.created_at) })}
          {" · "}
          <span className={isOver ? "text-destructive" : ""}>{end}</span>
          {" · "}
          {token.last_used_at ? t("used", { when: when(token.last_used_at) }) : t("unused")}
        </p>
      </div>
      <Button variant="outline" size="sm" onClick={onRevoke} aria-label={`${t("revoke")}: ${token.name}`}>
        {t("revoke")}
      </Button>
    </div>
  );
}
