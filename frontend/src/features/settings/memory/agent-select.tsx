"use client";
import { titleOf, useAgents } from "@/lib/agents";
import { useT } from "@/i18n";
import { Select, SelectContent, SelectItem, SelectTrigger, SelectValue } from "@/ui/select";
import { Panel, Row } from "../parts";

const LEAD = "-";

/** Choice of the agent whose memory is shown: own agents each have a memory of their own. */
export function AgentSelect({
  agent,
  onAgent,
}: {
  agent: string | null;
  onAgent: (agent: string | null) => void;
}) {
  const t = useT("memory");
  const agents = useAgents().data ?? [];
  if (agents.length === 0) return null;
  return (
    <Panel>
      <Row label={t("agent")} hint={t("agentHint")} inline>
        <Select value={agent ?? LEAD} onValueChange={(name) => onAgent(name === LEAD ? null : name)}>
          <SelectTrigger aria-label={t("agent")} className="w-40 sm:w-52">
            <SelectValue />
          </SelectTrigger>
          <SelectContent>
            <SelectItem value={LEAD}>{t("defaultAgent")}</SelectItem>
            {agents.map((one) => (
              <SelectItem key={one.name} value={one.name}>
                {titleOf(one)}
              </SelectItem>
            ))}
          </SelectContent>
        </Select>
      </Row>
    </Panel>
  );
}
