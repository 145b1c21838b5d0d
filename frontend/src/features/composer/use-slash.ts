"use client";
import { useRouter } from "next/navigation";
import { useState } from "react";
import { useSession } from "@/features/chat";
import { fillComposer } from "@/lib/compose";
import { openShortcutHelp } from "@/lib/palette";
import { downloadThread } from "@/lib/export";
import { useT } from "@/i18n";
import { openThread, settingsPath, usePanel } from "@/lib/route";
import { filterSlash, SLASH_COMMANDS, slashQuery, type SlashCommand, type SlashItem } from "./slash";

interface Own {
  openModels: () => void;
  openModes: () => void;
  attach: () => void;
  attachFolder: () => void;
  stop: () => void;
}

/** The menu of commands for what is typed: its entries, which one is active, and what each does. */
export function useSlash(text: string, clear: () => void, own: Own) {
  const t = useT("composer");
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
    compact: () => fillComposer("/compact "),
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
  const all: SlashItem[] = SLASH_COMMANDS.filter(possible).map((id) => ({
    id,
    label: `/${id}`,
    text: t(`slash.${id}`),
  }));
  const items = query === null || dismissed === text ? [] : filterSlash(all, query);
  const active = place.query === query ? Math.min(place.at, items.length - 1) : 0;
  return {
    items,
    active,
    activate: (at: number) => setPlace({ query: query ?? "", at: (at + items.length) % items.length }),
    dismiss: () => setDismissed(text),
    run: (item: SlashItem) => {
      clear();
      actions[item.id]();
    },
  };
}
