"use client";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { Ellipsis, Pencil, RotateCw, Send, Trash2 } from "lucide-react";
import { useState } from "react";
import { useLocale, useT } from "@/i18n";
import { formatRelativeTime } from "@/lib/format";
import { Badge } from "@/ui/badge";
import { ConfirmDialog } from "@/ui/dialog";
import {
  DropdownMenu,
  DropdownMenuContent,
  DropdownMenuItem,
  DropdownMenuSeparator,
  DropdownMenuTrigger,
} from "@/ui/dropdown-menu";
import { IconButton } from "@/ui/icon-button";
import { CopyButton } from "@/ui/copy-button";
import { Switch } from "@/ui/switch";
import { toast } from "@/ui/toast";
import * as api from "./api";

interface BotCardProps {
  bot: api.Bot;
  onEdit: () => void;
}

export function BotCard({ bot, onEdit }: BotCardProps) {
  const t = useT("channels");
  const queries = useQueryClient();
  const [locale] = useLocale();
  const refresh = () => queries.invalidateQueries({ queryKey: api.KEYS.all });
  const turn = useMutation({
    mutationFn: (is_on: boolean) => api.changeBot(bot.id, { is_on }),
    onError: (problem) => toast.error(problem.message),
    onSettled: refresh,
  });
  const name = bot.name || bot.title;
  const isOn = turn.isPending ? turn.variables : bot.is_on;
  const works = [bot.agent && t("withAgent", { agent: bot.agent }), bot.model].filter(Boolean).join(" · ");
  return (
    <div role="listitem" aria-label={name} className="flex flex-col gap-2 px-4 py-4 sm:px-5">
      <div className="flex items-start gap-3">
        <div className="min-w-0 flex-1">
          <div className="flex flex-wrap items-center gap-x-2 gap-y-1">
            <h3 className="min-w-0 font-medium break-words">{name}</h3>
            <State bot={bot} isOn={isOn} />
            {bot.own && <Badge variant="outline">{t("own")}</Badge>}
          </div>
          <p className="mt-0.5 text-[13px] leading-relaxed break-words text-muted-foreground">
            {[bot.name && bot.name !== bot.title ? bot.title : "", works, bot.in_file ? t("inFile") : ""]
              .filter(Boolean)
              .join(" · ")}
          </p>
          {bot.link && isOn && (
            <a
              href={bot.link}
              target="_blank"
              rel="noreferrer"
              className="text-[13px] break-all text-primary underline-offset-4 hover:underline"
            >
              {bot.link}
            </a>
          )}
          {bot.calls && bot.can_change && <Called url={location.origin + bot.calls} />}
        </div>
        {bot.can_change && (
          <div className="flex h-8 shrink-0 items-center gap-2 pointer-coarse:h-11">
            {!bot.in_file && (
              <Switch
                checked={isOn}
                onCheckedChange={(on) => turn.mutate(on)}
                aria-label={t("on", { name })}
              />
            )}
            <Menu bot={bot} name={name} onEdit={onEdit} refresh={refresh} />
          </div>
        )}
      </div>
      {isOn && bot.error && bot.state !== "connected" && (
        <p className="text-[13px] leading-relaxed break-words text-destructive">{bot.error}</p>
      )}
      {isOn && bot.state !== "connected" && bot.since && (
        <p className="text-xs text-muted-foreground">
          {t("since", { when: formatRelativeTime(bot.since, locale) })}
        </p>
      )}
      {bot.waiting > 0 && <p className="text-xs text-muted-foreground">{t("waiting", { n: bot.waiting })}</p>}
    </div>
  );
}

/** The address that the platform is to call. */
function Called({ url }: { url: string }) {
  const t = useT("channels");
  return (
    <p className="mt-1 flex items-center gap-1 text-[13px] text-muted-foreground">
      <span className="min-w-0 break-all">{t("calls", { url })}</span>
      <CopyButton value={url} />
    </p>
  );
}

function State({ bot, isOn }: { bot: api.Bot; isOn: boolean }) {
  const t = useT("channels.state");
  if (!isOn) return <Badge variant="secondary">{t("off")}</Badge>;
  if (bot.state === "connected") return <Badge variant="success">{t("connected")}</Badge>;
  if (bot.state === "retrying")
    return <Badge variant="warning">{t(bot.error ? "retrying" : "starting")}</Badge>;
  return <Badge variant="destructive">{t(bot.state)}</Badge>;
}

interface MenuProps extends BotCardProps {
  name: string;
  refresh: () => Promise<void>;
}

function Menu({ bot, name, onEdit, refresh }: MenuProps) {
  const t = useT("channels");
  const [removing, setRemoving] = useState(false);
  const act = async (work: () => Promise<string>) => {
    try {
      toast.success(await work());
    } catch (problem) {
      toast.error((problem as Error).message);
    }
    await refresh();
  };
  const test = () =>
    act(async () => {
      const { place } = await api.testBot(bot.id);
      return t("tested", { place });
    });
  const restart = () =>
    act(async () => {
      await api.restartBot(bot.id);
      return t("restarted", { name });
    });
  const remove = async () => {
    try {
      await api.removeBot(bot.id);
    } catch (problem) {
      toast.error((problem as Error).message);
      throw problem;
    }
    toast.success(t("removed", { name }));
    await refresh();
  };
  return (
    <>
      <DropdownMenu>
        <DropdownMenuTrigger asChild>
          <IconButton label={t("actions", { name })}>
            <Ellipsis aria-hidden />
          </IconButton>
        </DropdownMenuTrigger>
        <DropdownMenuContent align="end">
          {!bot.in_file && (
            <DropdownMenuItem onSelect={onEdit}>
              <Pencil aria-hidden />
              {t("edit")}
            </DropdownMenuItem>
          )}
          <DropdownMenuItem disabled={bot.state !== "connected"} onSelect={() => void test()}>
            <Send aria-hidden />
            {t("test")}
          </DropdownMenuItem>
          <DropdownMenuItem disabled={!bot.is_on} onSelect={() => void restart()}>
            <RotateCw aria-hidden />
            {t("restart")}
          </DropdownMenuItem>
          {!bot.in_file && (
            <>
              <DropdownMenuSeparator />
              <DropdownMenuItem destructive onSelect={() => setRemoving(true)}>
                <Trash2 aria-hidden />
                {t("remove")}
              </DropdownMenuItem>
            </>
          )}
        </DropdownMenuContent>
      </DropdownMenu>
      <ConfirmDialog
        open={removing}
        onOpenChange={setRemoving}
        title={t("removeTitle", { name })}
        text={t("removeText")}
        confirm={t("remove")}
        destructive
        onConfirm={remove}
      />
    </>
  );
}
