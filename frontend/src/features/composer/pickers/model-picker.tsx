"use client";
import { ChevronDown, TriangleAlert } from "lucide-react";
import { Suspense } from "react";
import { useT } from "@/i18n";
import type { Model } from "@/lib/api";
import { afterPage } from "@/lib/late";
import { Button } from "@/ui/button";
import { Popover, PopoverContent, PopoverTrigger } from "@/ui/popover";
import type { useRunChoice } from "@/lib/run-settings";

const ModelList = afterPage(() => import("./model-list"));

interface ModelPickerProps {
  choice: ReturnType<typeof useRunChoice>;
  open: boolean;
  onOpenChange: (open: boolean) => void;
  /** Moves the focus afterwards. */
  onClosed: () => void;
}

export function ModelPicker({ choice, open, onOpenChange, onClosed }: ModelPickerProps) {
  const t = useT("composer");
  const { model, query } = choice;
  const name =
    model?.display_name ?? choice.settings.modelName ?? (query.isLoading ? t("modelLoading") : t("model"));
  const pick = (one: Model) => {
    choice.change({ modelName: one.name });
    onOpenChange(false);
  };
  return (
    <Popover open={open} onOpenChange={onOpenChange}>
      <PopoverTrigger asChild>
        <Button
          variant="ghost"
          size="sm"
          className="max-w-28 min-w-0 shrink gap-1 px-2 font-normal text-muted-foreground data-[state=open]:bg-accent sm:max-w-52"
          title={`${t("model")}: ${name}`}
        >
          {model?.problem && <TriangleAlert aria-hidden className="text-warning" />}
          <span className="sr-only">{t("model")}: </span>
          <span className="truncate">{name}</span>
          <ChevronDown aria-hidden className="size-3.5 opacity-70" />
        </Button>
      </PopoverTrigger>
      <PopoverContent
        align="start"
        side="top"
        aria-label={t("modelPick")}
        className="flex w-80 flex-col overflow-hidden p-0"
        onCloseAutoFocus={(event) => {
          event.preventDefault();
          onClosed();
        }}
      >
        <Suspense fallback={<div className="h-40" />}>
          <ModelList choice={choice} onPick={pick} />
        </Suspense>
      </PopoverContent>
    </Popover>
  );
}
