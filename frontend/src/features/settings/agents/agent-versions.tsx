"use client";
import type { UseQueryResult } from "@tanstack/react-query";
import { History as HistoryIcon } from "lucide-react";
import { useT } from "@/i18n";
import type { components } from "@/lib/api-types";
import { Badge } from "@/ui/badge";
import { EmptyState } from "@/ui/empty-state";
import { toast } from "@/ui/toast";
import { History, type Change } from "../parts/history";
import { Panel, Waiting } from "../parts";
import { rollback } from "./api";

interface AgentVersionsProps {
  name: string;
  versions: UseQueryResult<components["schemas"]["AgentVersion"][]>;
  onChanged: () => Promise<unknown>;
}

export function AgentVersions({ name, versions, onChanged }: AgentVersionsProps) {
  const t = useT("agents.versions");
  const { data, error, refetch } = versions;
  if (!data) return <Waiting error={error} retry={() => void refetch()} />;
  if (data.length === 0)
    return (
      <Panel>
        <EmptyState icon={<HistoryIcon />} title={t("none")} text={t("noneText")} />
      </Panel>
    );
  const goBack = async (version: number) => {
    await rollback(name, version);
    await onChanged();
    toast.success(t("restored", { n: version }));
  };
  return (
    <History
      changes={data.map((one): Change => ({
        id: String(one.version),
        title: t("number", { n: one.version }),
        badge: one.is_current && (
          <Badge variant="success" className="ml-1.5">
            {t("current")}
          </Badge>
        ),
        at: one.created_at,
        byAgent: one.author === "agent",
        threadId: one.thread_id,
        filename: name,
        diff: one.diff,
        act: one.is_current ? undefined : { label: t("restore"), run: () => goBack(one.version) },
      }))}
    />
  );
}
