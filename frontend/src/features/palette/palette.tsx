"use client";
import { Search } from "lucide-react";
import { useState } from "react";
import { Command } from "cmdk";
import { useT } from "@/i18n";
import { Dialog, DialogContent, DialogTitle } from "@/ui/dialog";
import { Kbd } from "@/ui/kbd";
import { PaletteResults, Rename } from "./palette-results";

interface PaletteProps {
  open: boolean;
  onOpenChange: (open: boolean) => void;
  openHelp: () => void;
}

export default function Palette({ open, onOpenChange, openHelp }: PaletteProps) {
  const t = useT("palette");
  const [text, setText] = useState("");
  const [renaming, setRenaming] = useState(false);
  const change = (next: boolean) => {
    onOpenChange(next);
    if (next) setText("");
    setRenaming(false);
  };
  const rename = (title: string) => {
    setRenaming(true);
    setText(title);
  };
  return (
    <Dialog open={open} onOpenChange={change}>
      <DialogContent
        closable={false}
        aria-describedby={undefined}
        className="gap-0 overflow-hidden p-0 pb-0 max-sm:h-[75dvh] sm:top-[14vh] sm:max-w-xl sm:translate-y-0 sm:p-0"
      >
        <DialogTitle className="sr-only">{t("title")}</DialogTitle>
        <Command label={t("title")} shouldFilter={false} loop className="flex min-h-0 flex-1 flex-col">
          <div className="flex items-center gap-3 border-b px-4">
            <Search aria-hidden className="size-4 shrink-0 text-muted-foreground" />
            <Command.Input
              value={text}
              onValueChange={setText}
              placeholder={t(renaming ? "renamePlaceholder" : "placeholder")}
              className="h-13 w-full bg-transparent text-[15px] outline-none pointer-coarse:text-base"
            />
          </div>
          <Command.List className="min-h-0 flex-1 scroll-py-2 overflow-y-auto p-2 sm:max-h-[55vh]">
            {renaming ? (
              <Rename title={text.trim()} onDone={() => change(false)} />
            ) : (
              <PaletteResults
                text={text.trim()}
                onDone={() => onOpenChange(false)}
                onRename={rename}
                openHelp={openHelp}
              />
            )}
          </Command.List>
          <p
            aria-hidden
            className="flex items-center gap-4 border-t px-4 py-2 text-xs text-muted-foreground pointer-coarse:hidden"
          >
            <span className="flex items-center gap-1.5">
              <Kbd>↑</Kbd>
              <Kbd>↓</Kbd> {t("keys.move")}
            </span>
            <span className="flex items-center gap-1.5">
              <Kbd>↵</Kbd> {t("keys.open")}
            </span>
            <span className="flex items-center gap-1.5">
              <Kbd>Esc</Kbd> {t("keys.close")}
            </span>
          </p>
        </Command>
      </DialogContent>
    </Dialog>
  );
}
