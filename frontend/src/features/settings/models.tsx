"use client";
import { Bot } from "lucide-react";
import { useT } from "@/i18n";
import { isOnlyDemo, useModels } from "@/lib/models";
import { EmptyState } from "@/ui/empty-state";
import { ConnectModel } from "./connect-model";
import { ModelCard } from "./model-card";
import { Group, Panel, Waiting } from "./parts";

export default function ModelsSection() {
  const t = useT("settings.models");
  const { data, error, refetch } = useModels();
  if (!data) return <Waiting error={error} retry={refetch} />;
  const all = data.models;
  const onlyDemo = isOnlyDemo(all);
  return (
    <>
      {onlyDemo && <ConnectModel onlyDemo />}
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
      {!onlyDemo && <ConnectModel />}
    </>
  );
}
