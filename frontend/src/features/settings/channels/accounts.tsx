"use client";
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { useT } from "@/i18n";
import { Button } from "@/ui/button";
import { CopyButton } from "@/ui/copy-button";
import { Dialog, DialogContent, DialogDescription, DialogHeader, DialogTitle } from "@/ui/dialog";
import { toast } from "@/ui/toast";
import { Code, Group, Panel, Waiting } from "../parts";
import * as api from "./api";

/** The person's accounts on the platforms, and the way to connect one more. */
export function Accounts({ bots }: { bots: api.Bot[] }) {
  const t = useT("channels");
  const { data, error, refetch } = useQuery({ queryKey: api.KEYS.accounts, queryFn: api.accounts });
  const [code, setCode] = useState<api.Code | null>(null);
  const running = [...new Map(bots.filter((bot) => bot.is_on).map((bot) => [bot.kind, bot])).values()];
  if (!data) return <Waiting error={error} retry={refetch} rows={1} />;
  if (data.length === 0 && running.length === 0) return null;
  const ask = async (kind: string) => {
    try {
      setCode(await api.code(kind));
    } catch (problem) {
      toast.error((problem as Error).message);
    }
  };
  return (
    <Group title={t("accounts")}>
      <p className="-mt-1.5 text-[13px] leading-relaxed text-muted-foreground">{t("accountsText")}</p>
      <Panel role="list">
        {data.map((account) => (
          <Account key={account.id} account={account} />
        ))}
        {running.map((bot) => (
          <div key={bot.kind} role="listitem" className="flex items-center gap-4 px-4 py-3 sm:px-5">
            <p className="min-w-0 flex-1 text-sm">{bot.title}</p>
            <Button
              size="sm"
              variant="outline"
              aria-label={t("connectTo", { kind: bot.title })}
              onClick={() => void ask(bot.kind)}
            >
              {t("connect")}
            </Button>
          </div>
        ))}
      </Panel>
      <Dialog open={code !== null} onOpenChange={(open) => !open && setCode(null)}>
        <DialogContent>{code && <CodeOf code={code} />}</DialogContent>
      </Dialog>
    </Group>
  );
}

function Account({ account }: { account: api.Linked }) {
  const t = useT("channels");
  const queries = useQueryClient();
  const [pending, setPending] = useState(false);
  const name = account.external_account_name || account.external_account_id || "";
  const unlink = async () => {
    setPending(true);
    try {
      await api.unlink(account.id);
      toast.success(t("unlinked", { name }));
    } catch (problem) {
      toast.error((problem as Error).message);
    }
    await queries.invalidateQueries({ queryKey: api.KEYS.accounts });
    setPending(false);
  };
  return (
    <div role="listitem" className="flex items-center gap-4 px-4 py-3 sm:px-5">
      <div className="min-w-0 flex-1">
        <p className="text-sm font-medium break-words">{name}</p>
        <p className="text-[13px] break-words text-muted-foreground">
          {[account.display_name, account.workspace_name].filter(Boolean).join(" · ")}
        </p>
      </div>
      <Button
        size="sm"
        variant="ghost"
        pending={pending}
        aria-label={t("unlinkOf", { name })}
        onClick={() => void unlink()}
      >
        {t("unlink")}
      </Button>
    </div>
  );
}

function CodeOf({ code }: { code: api.Code }) {
  const t = useT("channels");
  const text = `/connect ${code.code}`;
  return (
    <>
      <DialogHeader>
        <DialogTitle>{t("codeTitle")}</DialogTitle>
        <DialogDescription>{t("codeText", { minutes: Math.round(code.expires_in / 60) })}</DialogDescription>
      </DialogHeader>
      <div className="flex items-center gap-2 rounded-xl border bg-muted/40 px-3 py-2">
        <div className="min-w-0 flex-1">
          <Code>{text}</Code>
        </div>
        <CopyButton value={text} />
      </div>
      {code.url && (
        <Button asChild variant="outline" className="self-start">
          <a href={code.url} target="_blank" rel="noreferrer">
            {t("codeOpen")}
          </a>
        </Button>
      )}
    </>
  );
}
