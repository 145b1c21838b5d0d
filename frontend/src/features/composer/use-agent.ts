"use client";
import { useSession } from "@/features/chat";
import { useAgents } from "@/lib/agents";
import { useRunChoice } from "@/lib/run-settings";

/** Agent that answers the message being written, and the other settings it is sent with. */
export function useAgentChoice(conversation: string) {
  const session = useSession();
  const { data: agents } = useAgents();
  const { agent: picked } = useRunChoice(conversation).settings;
  const wanted = picked === undefined ? session.agent : picked;
  const known = agents?.find((one) => one.name === wanted?.name);
  const gone = agents && wanted && !wanted.setUp && !known ? wanted.name : null;
  const choice = useRunChoice(conversation, known?.model);
  const settings = gone ? { ...choice.settings, agent: null } : choice.settings;
  return {
    choice: { ...choice, settings },
    agents: agents ?? [],
    agent: gone ? null : wanted,
    /** Names of the only skills that the agent uses; null: all. */
    allowed: settings.off?.includes("skills") ? [] : (known?.skills ?? null),
    /** One that answered so far and was deleted. */
    agentGone: gone,
  };
}
