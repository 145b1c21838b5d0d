"use client";
import { useQuery } from "@tanstack/react-query";
import {
  BookOpenText,
  Brain,
  Cable,
  Globe,
  Settings2,
  SlidersHorizontal,
  type LucideIcon,
} from "lucide-react";
import Link from "next/link";
import { useId, useState } from "react";
import { LateTexts, useT } from "@/i18n";
import type { components } from "@/lib/api-types";
import { cn } from "@/lib/cn";
import { http } from "@/lib/http";
import { settingsPath } from "@/lib/route";
import { useSwitches } from "@/lib/switches";
import { IconButton } from "@/ui/icon-button";
import { Popover, PopoverContent, PopoverTrigger } from "@/ui/popover";
import { Switch } from "@/ui/switch";
import { toast } from "@/ui/toast";
import { texts } from "../texts";

interface ToolsMenuProps {
  conversation: string;
  isNew: boolean;
  /** Moves the focus afterwards. */
  onClosed: () => void;
}

/** Menu of the tools that this chat may use. */
export default function ToolsMenu(props: ToolsMenuProps) {
  return (
    <LateTexts of={texts} fallback={<div className="size-8" />}>
      <Menu {...props} />
    </LateTexts>
  );
}

const OWN = [
  ["web", Globe],
  ["memory", Brain],
  ["skills", BookOpenText],
] as const satisfies readonly (readonly [string, LucideIcon])[];

type Server = components["schemas"]["McpServerState"];
const servers = async () =>
  (await http.get<components["schemas"]["McpServerStates"]>("/api/mcp/servers")).servers;

function Menu({ conversation, isNew, onClosed }: ToolsMenuProps) {
  const t = useT("tools");
  const [open, setOpen] = useState(false);
  const { known, off, temporary, isOn, set } = useSwitches(conversation, isNew);
  const { data = [] } = useQuery<Server[]>({
    queryKey: ["mcp", "servers"],
    queryFn: servers,
    enabled: open || off.length > 0,
  });
  const there = data.filter(({ state }) => state !== "off");
  const offered = [...OWN.map(([name]) => name), ...there.map(({ name }) => `mcp:${name}`)];
  const count = offered.filter((name) => !isOn(name)).length;
  const flip = (name: string) => (on: boolean) =>
    void set(name, on).catch((error: Error) => toast.error(t("failed"), { description: error.message }));
  const row = (name: string) => ({
    on: isOn(name),
    disabled: !known || (temporary && name === "memory"),
    onChange: flip(name),
  });
  return (
    <Popover open={open} onOpenChange={setOpen}>
      <PopoverTrigger asChild>
        <IconButton
          label={count ? t("titleOff", { count }) : t("title")}
          className="relative text-muted-foreground data-[state=open]:bg-accent"
        >
          <SlidersHorizontal aria-hidden />
          {count > 0 && (
            <span
              aria-hidden
              className="absolute top-1 right-1 size-2 rounded-full bg-primary ring-2 ring-card"
            />
          )}
        </IconButton>
      </PopoverTrigger>
      <PopoverContent
        align="start"
        side="top"
        aria-label={t("title")}
        className="flex max-h-[min(32rem,var(--radix-popover-content-available-height))] w-80 flex-col gap-3 overflow-y-auto"
        onCloseAutoFocus={(event) => {
          event.preventDefault();
          onClosed();
        }}
      >
        <p className="font-medium">{t("title")}</p>
        {OWN.map(([name, icon]) => (
          <Row
            key={name}
            icon={icon}
            name={t(name)}
            text={temporary && name === "memory" ? t("memoryTemporary") : t(`${name}Text`)}
            {...row(name)}
          />
        ))}
        {there.length > 0 && (
          <section className="flex flex-col gap-3 border-t pt-3">
            <h3 className="text-xs font-medium text-muted-foreground">{t("servers")}</h3>
            {there.map(({ name, description }) => (
              <Row key={name} icon={Cable} name={name} text={description} {...row(`mcp:${name}`)} />
            ))}
          </section>
        )}
        <Link
          href={settingsPath("mcp")}
          className="flex items-center gap-2 border-t pt-3 text-[13px] text-muted-foreground hover:text-foreground"
        >
          <Settings2 aria-hidden className="size-4" />
          {t("manage")}
        </Link>
      </PopoverContent>
    </Popover>
  );
}

interface RowProps {
  icon: LucideIcon;
  name: string;
  text: string;
  on: boolean;
  disabled: boolean;
  onChange: (on: boolean) => void;
}

function Row({ icon: Icon, name, text, on, disabled, onChange }: RowProps) {
  const id = useId();
  return (
    <div className="flex items-start gap-2.5">
      <Icon
        aria-hidden
        className={cn("mt-0.5 size-4 shrink-0", on ? "text-primary" : "text-muted-foreground")}
      />
      <div className="min-w-0 flex-1">
        <label htmlFor={id} className="block truncate text-[13px] font-medium">
          {name}
        </label>
        {text && (
          <p id={`${id}-text`} className="line-clamp-2 text-xs text-pretty text-muted-foreground">
            {text}
          </p>
        )}
      </div>
      <Switch
        id={id}
        checked={on}
        disabled={disabled}
        aria-describedby={text ? `${id}-text` : undefined}
        onCheckedChange={onChange}
      />
    </div>
  );
}
