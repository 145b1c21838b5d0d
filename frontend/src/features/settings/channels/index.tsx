"use client";
import { useQuery } from "@tanstack/react-query";
import { MessagesSquare, Plus } from "lucide-react";
import { useState } from "react";
import { useAccount } from "@/features/auth";
import { useT } from "@/i18n";
import { Button } from "@/ui/button";
import { EmptyState } from "@/ui/empty-state";
import { Group, Panel, Waiting } from "../parts";
import { Accounts } from "./accounts";
import * as api from "./api";
import { BotCard } from "./bot-card";
import { BotDialog } from "./bot-dialog";

/** Milliseconds until states are looked at again; sooner while one is about to change. */
const AGAIN = 10_000;
const SOON = 1500;

export default function ChannelsSection() {
  const t = useT("channels");
  const isAdmin = useAccount().data?.system_role === "admin";
  const bots = useQuery({
    queryKey: api.KEYS.bots,
    queryFn: api.bots,
    refetchInterval: ({ state }) => (state.data?.some((one) => one.state === "retrying") ? SOON : AGAIN),
  });
  const providers = useQuery({ queryKey: api.KEYS.providers, queryFn: api.providers });
  const [editing, setEditing] = useState<api.Bot | "new" | null>(null);
  if (!bots.data || !providers.data)
    return (
      <Waiting
        error={bots.error ?? providers.error}
        retry={() => void Promise.all([bots.refetch(), providers.refetch()])}
      />
    );
  const add = (
    <Button size="sm" onClick={() => setEditing("new")}>
      <Plus aria-hidden />
      {t("add")}
    </Button>
  );
  return (
    <>
      <Group title={t("bots")} action={bots.data.length > 0 ? add : null}>
        <Panel role={bots.data.length > 0 ? "list" : undefined}>
          {bots.data.length === 0 && (
            <EmptyState
              icon={<MessagesSquare />}
              title={t("none")}
              text={t(isAdmin ? "noneText" : "noneTextUser")}
              action={add}
            />
          )}
          {bots.data.map((bot) => (
            <BotCard key={bot.id} bot={bot} onEdit={() => setEditing(bot)} />
          ))}
        </Panel>
      </Group>
      <Accounts bots={bots.data} />
      <BotDialog
        bot={editing === "new" ? null : editing}
        open={editing !== null}
        providers={providers.data}
        onClose={() => setEditing(null)}
      />
    </>
  );
}
