"use client";
import {
  BookOpenText,
  CircleHelp,
  Cpu,
  Download,
  FoldVertical,
  FolderUp,
  FolderOpen,
  ListChecks,
  Paperclip,
  Settings,
  Square,
  SquarePen,
  type LucideIcon,
} from "lucide-react";
import { useEffect, useRef } from "react";
import { useT } from "@/i18n";
import { cn } from "@/lib/cn";
import { Kbd } from "@/ui/kbd";
import { SLASH_LIST, slashItemId, type SlashCommand, type SlashItem } from "./slash";

const ICONS: Record<SlashCommand, LucideIcon> = {
  new: SquarePen,
  model: Cpu,
  mode: ListChecks,
  attach: Paperclip,
  folder: FolderUp,
  files: FolderOpen,
  compact: FoldVertical,
  export: Download,
  stop: Square,
  settings: Settings,
  help: CircleHelp,
};

interface SlashMenuProps {
  items: SlashItem[];
  active: number;
  onHover: (index: number) => void;
  onPick: (item: SlashItem) => void;
}

/** The keyboard stays in the message field, which names the active entry. */
export default function SlashMenu({ items, active, onHover, onPick }: SlashMenuProps) {
  const t = useT("composer");
  const list = useRef<HTMLUListElement>(null);
  useEffect(() => {
    list.current?.querySelector("[aria-selected=true]")?.scrollIntoView({ block: "nearest" });
  }, [active]);
  return (
    <ul
      ref={list}
      id={SLASH_LIST}
      tabIndex={0} // it scrolls
      role="listbox"
      aria-label={t("commands")}
      className="absolute inset-x-0 bottom-full z-20 mb-2 max-h-72 animate-rise overflow-y-auto rounded-xl bg-popover p-1 text-popover-foreground shadow-float"
    >
      {items.map((item, index) => {
        const Icon = item.command ? ICONS[item.command] : BookOpenText;
        return (
          <li
            key={item.id}
            id={slashItemId(item.id)}
            role="option"
            aria-selected={index === active}
            onPointerMove={() => onHover(index)}
            onPointerDown={(event) => event.preventDefault()}
            onClick={() => onPick(item)}
            className={cn(
              "flex cursor-default items-center gap-3 rounded-lg px-2.5 py-2 text-sm pointer-coarse:min-h-11",
              index > 0 && !item.command && items[index - 1]!.command && "mt-1 border-t",
              index === active && "bg-accent text-accent-foreground",
            )}
          >
            <Icon aria-hidden className="size-4 shrink-0 text-muted-foreground" />
            <span className="max-w-3/5 shrink-0 truncate font-medium">{item.label}</span>
            <span className="truncate text-muted-foreground">{item.text}</span>
            {item.more && (
              <span className="ml-auto shrink-0 text-xs text-muted-foreground pointer-coarse:hidden">
                <Kbd>Tab</Kbd> {item.more}
              </span>
            )}
          </li>
        );
      })}
    </ul>
  );
}
