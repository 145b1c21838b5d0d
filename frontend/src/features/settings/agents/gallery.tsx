"use client";
import { Bot, FilePlus2, MessageSquarePlus, Plus } from "lucide-react";
import { useState } from "react";
import { useT } from "@/i18n";
import { titleOf, type Agent } from "@/lib/agents";
import { Badge } from "@/ui/badge";
import { Button } from "@/ui/button";
import { DropdownMenu, DropdownMenuContent, DropdownMenuItem, DropdownMenuTrigger } from "@/ui/dropdown-menu";
import { EmptyState } from "@/ui/empty-state";
import { IconButton } from "@/ui/icon-button";
import { ItemLink } from "../parts/item";
import { Group, Panel } from "../parts";
import { NewAgentDialog, type How } from "./new-agent-dialog";
import { useChatWith } from "./use-chat-with";

interface GalleryProps {
  agents: readonly Agent[];
  /** The agent that was looked at just now. */
  last: string | null;
  onOpen: (name: string) => void;
}

export function Gallery({ agents, last, onOpen }: GalleryProps) {
  const t = useT("agents");
  const [making, setMaking] = useState<How | null>(null);
  const add = (
    <DropdownMenu>
      <DropdownMenuTrigger asChild>
        <Button size="sm">
          <Plus aria-hidden />
          {t("new")}
        </Button>
      </DropdownMenuTrigger>
      <DropdownMenuContent align="end">
        <DropdownMenuItem onSelect={() => setMaking("chat")}>
          <MessageSquarePlus aria-hidden />
          {t("inChat")}
        </DropdownMenuItem>
        <DropdownMenuItem onSelect={() => setMaking("form")}>
          <FilePlus2 aria-hidden />
          {t("byForm")}
        </DropdownMenuItem>
      </DropdownMenuContent>
    </DropdownMenu>
  );
  return (
    <>
      <Group title={t("yours")} action={agents.length ? add : null}>
        {agents.length === 0 ? (
          <Panel>
            <EmptyState icon={<Bot />} title={t("none")} text={t("noneText")} action={add} />
          </Panel>
        ) : (
          <Panel role="list">
            {agents.map((agent) => (
              <AgentRow key={agent.name} agent={agent} wasOpen={agent.name === last} onOpen={onOpen} />
            ))}
          </Panel>
        )}
      </Group>
      <NewAgentDialog
        how={making}
        taken={agents.map(({ name }) => name)}
        onClose={() => setMaking(null)}
        onMade={onOpen}
      />
    </>
  );
}

interface AgentRowProps {
  agent: Agent;
  wasOpen: boolean;
  onOpen: (name: string) => void;
}

function AgentRow({ agent, wasOpen, onOpen }: AgentRowProps) {
  const t = useT("agents");
  const chatWith = useChatWith();
  return (
    <div
      role="listitem"
      className="relative flex items-center gap-4 px-4 py-3 transition-colors first:rounded-t-xl last:rounded-b-xl hover:bg-accent/40 sm:px-5"
    >
      <span
        aria-hidden
        className="flex size-9 shrink-0 items-center justify-center rounded-xl bg-primary-soft text-primary"
      >
        <Bot className="size-4.5" />
      </span>
      <div className="min-w-0 flex-1">
        <div className="flex flex-wrap items-center gap-x-2">
          <ItemLink name={agent.name} wasOpen={wasOpen} onOpen={onOpen}>
            {titleOf(agent)}
          </ItemLink>
          {agent.display_name && <span className="text-xs text-muted-foreground">{agent.name}</span>}
          {agent.model && <Badge variant="outline">{agent.model}</Badge>}
        </div>
        {agent.description && (
          <p className="mt-0.5 line-clamp-2 text-[13px] leading-relaxed text-muted-foreground">
            {agent.description}
          </p>
        )}
      </div>
      <IconButton
        label={t("chatWith", { name: titleOf(agent) })}
        className="relative"
        onClick={() => chatWith(agent.name)}
      >
        <MessageSquarePlus aria-hidden />
      </IconButton>
    </div>
  );
}
