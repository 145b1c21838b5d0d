"use client";
import { useRouter } from "next/navigation";
import { useState } from "react";
import { useSession } from "@/features/chat";
import { sayInComposer } from "@/lib/compose";
import { openShortcutHelp } from "@/lib/palette";
import { downloadThread } from "@/lib/export";
import { useLocale, useT } from "@/i18n";
import { openThread, settingsPath, usePanel } from "@/lib/route";
import { aboutSkill, usePrompts, useSkills } from "@/lib/skills";
import {
  filterSlash,
  skillPrefix,
  SLASH_COMMANDS,
  slashQuery,
  type SlashCommand,
  type SlashItem,
} from "./slash";

interface Own {
  openModels: () => void;
  openModes: () => void;
  attach: () => void;
  attachFolder: () => void;
  stop: () => void;
}

/**
 * The menu of commands, skills and prompts of MCP servers for what is typed: its entries, which one is active, and what each does. `allowed`: names of
 * the only skills that the agent uses; null: all. `prefix`: the skill with which the text begins.
 */
export function useSlash(
  text: string,
  allowed: readonly string[] | null,
  write: (text: string) => void,
  own: Own,
) {
  const t = useT("composer");
  const [locale] = useLocale();
  const router = useRouter();
  const panel = usePanel();
  const { threadId, running } = useSession();
  const [dismissed, setDismissed] = useState<string | null>(null);
  const [place, setPlace] = useState({ query: "", at: 0 });

  const actions: Record<SlashCommand, () => void> = {
    new: () => openThread(null),
    model: own.openModels,
    mode: own.openModes,
    attach: own.attach,
    folder: own.attachFolder,
    files: () => panel.set(""),
    compact: () => sayInComposer("/compact"),
    export: () => threadId && downloadThread(threadId, "md"),
    stop: own.stop,
    settings: () => router.push(settingsPath()),
    help: openShortcutHelp,
  };
  const possible = (id: SlashCommand) => {
    if (id === "stop") return running;
    return id === "export" || id === "compact" || id === "files" || id === "new" ? threadId !== null : true;
  };

  const query = slashQuery(text);
  const begins = text.startsWith("/");
  const { data = [] } = useSkills(begins);
  const { data: prompts = [] } = usePrompts(begins);
  const skills = data.filter(({ name, enabled }) => enabled && (allowed?.includes(name) ?? true));
  const all: SlashItem[] = [
    ...SLASH_COMMANDS.filter(possible).map((command) => ({
      id: command,
      command,
      label: `/${command}`,
      text: t(`slash.${command}`),
      more: command === "compact" ? t("slash.compactMore") : undefined,
    })),
    ...skills.map((skill) => ({
      id: `skill-${skill.name}`,
      command: null,
      label: `/${skill.name}`,
      text: aboutSkill(skill, locale),
    })),
    ...prompts.map(({ command, description }) => ({
      id: `prompt-${command}`,
      command: null,
      label: command,
      text: description,
    })),
  ];
  const items = query === null || dismissed === text ? [] : filterSlash(all, query);
  const active = place.query === query ? Math.min(place.at, items.length - 1) : 0;
  const run = (item: SlashItem) => {
    write(item.command ? "" : `${item.label} `);
    // After the field has the focus again, which would close a picker.
    if (item.command) requestAnimationFrame(actions[item.command]);
  };
  return {
    items,
    active,
    prefix: skillPrefix(
      text,
      skills.map(({ name }) => name),
    ),
    activate: (at: number) => setPlace({ query: query ?? "", at: (at + items.length) % items.length }),
    dismiss: () => setDismissed(text),
    run,
    /** Writes it out where words may follow. */
    complete: (item: SlashItem) => (item.command && !item.more ? run(item) : write(`${item.label} `)),
  };
}
