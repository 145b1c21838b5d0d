"use client";
import { PowerOff } from "lucide-react";
import { useState } from "react";
import { useT } from "@/i18n";
import { useAgents } from "@/lib/agents";
import { ErrorState } from "@/ui/error-state";
import { Code, Note, Waiting } from "../parts";
import { useItem } from "../parts/use-item";
import { AgentView } from "./agent-view";
import { Gallery } from "./gallery";

export default function AgentsSection() {
  const t = useT("agents");
  const { data, error, refetch, off } = useAgents();
  const [name, open] = useItem();
  const [last, setLast] = useState<string | null>(null);
  const show = (next: string) => {
    setLast(next);
    open(next);
  };
  if (off)
    return (
      <Note tone="warning" icon={<PowerOff aria-hidden />}>
        {t.rich("off", { code: (text) => <Code>{text}</Code> })}
      </Note>
    );
  if (!data) return <Waiting error={error} retry={() => void refetch()} />;
  if (name === null) return <Gallery agents={data} last={last} onOpen={show} />;
  const agent = data.find((one) => one.name === name);
  if (!agent) return <ErrorState error={t("gone", { name })} retry={() => open(null)} />;
  return <AgentView key={name} agent={agent} onBack={() => open(null)} />;
}
