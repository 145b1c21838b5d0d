"use client";
import { useQuery } from "@tanstack/react-query";
import { Cable, Plus } from "lucide-react";
import { useState } from "react";
import { useAccount } from "@/features/auth";
import { useT } from "@/i18n";
import { Button } from "@/ui/button";
import { EmptyState } from "@/ui/empty-state";
import { Group, Panel, Waiting } from "../parts";
import * as api from "./api";
import { ServerCard } from "./server-card";
import { ServerDialog } from "./server-dialog";

/** Milliseconds until states are looked at again; sooner while one is about to change. */
const AGAIN = 10_000;
const SOON = 1500;

export default function McpSection() {
  const t = useT("mcp");
  const isAdmin = useAccount().data?.system_role === "admin";
  const { data, error, refetch } = useQuery({
    queryKey: api.KEYS.servers,
    queryFn: api.servers,
    refetchInterval: ({ state }) => (state.data?.some((one) => one.state === "starting") ? SOON : AGAIN),
  });
  const entries = useQuery({ queryKey: api.KEYS.entries, queryFn: api.entries, enabled: isAdmin });
  const [editing, setEditing] = useState<string | "new" | null>(null);
  if (!data || (isAdmin && entries.isLoading)) return <Waiting error={error} retry={refetch} />;
  return (
    <>
      {isAdmin && (
        <div className="-mt-2 flex">
          <Button size="sm" onClick={() => setEditing("new")}>
            <Plus aria-hidden />
            {t("add")}
          </Button>
        </div>
      )}
      <Group>
        <Panel role={data.length > 0 ? "list" : undefined}>
          {data.length === 0 && (
            <EmptyState icon={<Cable />} title={t("none")} text={t(isAdmin ? "noneText" : "noneTextUser")} />
          )}
          {data.map((server) => (
            <ServerCard
              key={server.name}
              server={server}
              entry={entries.data?.[server.name] ?? null}
              onEdit={() => setEditing(server.name)}
            />
          ))}
        </Panel>
      </Group>
      {isAdmin && entries.data && (
        <ServerDialog name={editing} entries={entries.data} onClose={() => setEditing(null)} />
      )}
    </>
  );
}
