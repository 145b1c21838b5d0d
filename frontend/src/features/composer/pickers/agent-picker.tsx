"use client";
import { Bot, ChevronDown, Settings2 } from "lucide-react";
import Link from "next/link";
import { useT } from "@/i18n";
import { titleOf, type Agent } from "@/lib/agents";
import { settingsPath } from "@/lib/route";
import type { AgentChoice } from "@/lib/run-settings";
import { Button } from "@/ui/button";
import {
  DropdownMenu,
  DropdownMenuContent,
  DropdownMenuItem,
  DropdownMenuLabel,
  DropdownMenuRadioGroup,
  DropdownMenuRadioItem,
  DropdownMenuSeparator,
  DropdownMenuTrigger,
} from "@/ui/dropdown-menu";

interface AgentPickerProps {
  agents: readonly Agent[];
  current: AgentChoice | null;
  onPick: (agent: AgentChoice | null) => void;
  /** Moves the focus afterwards. */
  onClosed: () => void;
}

const DEFAULT = "-";

/** Picker of the agent that answers. */
export default function AgentPicker({ agents, current, onPick, onClosed }: AgentPickerProps) {
  const t = useT("composer");
  const listed = agents.find((one) => one.name === current?.name);
  const name = listed ? titleOf(listed) : (current?.name ?? t("agentDefault"));
  return (
    <DropdownMenu>
      <DropdownMenuTrigger asChild>
        <Button
          variant="ghost"
          size="sm"
          className="max-w-40 min-w-0 shrink gap-1 px-2 font-normal text-muted-foreground data-[state=open]:bg-accent"
          title={`${t("agent")}: ${name}`}
        >
          <Bot aria-hidden className={current ? "text-primary" : undefined} />
          <span className="sr-only">{t("agent")}: </span>
          <span className="truncate max-sm:sr-only">{name}</span>
          <ChevronDown aria-hidden className="size-3.5 opacity-70 max-sm:hidden" />
        </Button>
      </DropdownMenuTrigger>
      <DropdownMenuContent
        align="start"
        side="top"
        className="max-h-96 w-72 overflow-y-auto"
        onCloseAutoFocus={(event) => {
          event.preventDefault();
          onClosed();
        }}
      >
        <DropdownMenuLabel>{t("agent")}</DropdownMenuLabel>
        <DropdownMenuRadioGroup
          value={current?.name ?? DEFAULT}
          onValueChange={(next) => onPick(next === DEFAULT ? null : { name: next })}
        >
          <Item value={DEFAULT} name={t("agentDefault")} text={t("agentDefaultText")} />
          {current && !listed && <Item value={current.name} name={current.name} text={t("agentMaking")} />}
          {agents.map((one) => (
            <Item key={one.name} value={one.name} name={titleOf(one)} text={one.description ?? ""} />
          ))}
        </DropdownMenuRadioGroup>
        <DropdownMenuSeparator />
        <DropdownMenuItem asChild>
          <Link href={settingsPath("agents")}>
            <Settings2 aria-hidden />
            {t("agentManage")}
          </Link>
        </DropdownMenuItem>
      </DropdownMenuContent>
    </DropdownMenu>
  );
}

function Item({ value, name, text }: { value: string; name: string; text: string }) {
  return (
    <DropdownMenuRadioItem value={value}>
      <span className="min-w-0">
        <span className="block truncate font-medium">{name}</span>
        {text && <span className="line-clamp-2 text-xs text-muted-foreground">{text}</span>}
      </span>
    </DropdownMenuRadioItem>
  );
}
