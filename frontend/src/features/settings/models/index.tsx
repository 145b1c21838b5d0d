"use client";
import { useQuery } from "@tanstack/react-query";
import { Bot } from "lucide-react";
import { useState } from "react";
import { useAccount } from "@/features/auth";
import { useT } from "@/i18n";
import { keys } from "@/lib/keys";
import { isOnlyDemo, useModels } from "@/lib/models";
import { EmptyState } from "@/ui/empty-state";
import { connections } from "./api";
import { ConnectModel } from "./connect-model";
import { Connected } from "./connected";
import { ConnectionList } from "./connections";
import { ModelCard } from "./model-card";
import { Group, Panel, Waiting } from "../parts";
import { WebSearch } from "./web-search";

export default function ModelsSection() {
  const t = useT("models");
  const isAdmin = useAccount().data?.system_role === "admin";
  const { data, error, refetch } = useModels();
  const connected = useQuery({ queryKey: keys.connections, queryFn: connections, enabled: isAdmin });
  const [connectedModels, setConnectedModels] = useState<number | null>(null);
  if (!data || (isAdmin && connected.isLoading)) return <Waiting error={error} retry={refetch} />;
  const all = data.models;
  const onlyDemo = isOnlyDemo(all);
  // Where config.yaml names the models, they are changed there.
  const { connections: every = [], models_in_file, tools_in_file } = connected.data ?? {};
  const own = connected.data && !models_in_file ? every.filter((one) => one.kind === "model") : null;
  const searches = every.filter((one) => one.kind === "search");
  return (
    <>
      {connectedModels !== null && !onlyDemo && <Connected models={connectedModels} />}
      {onlyDemo && (
        <ConnectModel onlyDemo isAdmin={isAdmin} connections={own} onConnected={setConnectedModels} />
      )}
      <Group>
        {all.length === 0 ? (
          <Panel>
            <EmptyState icon={<Bot />} title={t("none")} />
          </Panel>
        ) : (
          <Panel role="list">
            {all.map((model) => (
              <ModelCard key={model.name} model={model} />
            ))}
          </Panel>
        )}
      </Group>
      {!onlyDemo && isAdmin && <ConnectModel isAdmin connections={own} onConnected={setConnectedModels} />}
      {connected.data && <WebSearch connections={tools_in_file ? null : searches} />}
      {connected.data && (
        <ConnectionList connections={[...(own ?? []), ...(tools_in_file ? [] : searches)]} />
      )}
    </>
  );
}
