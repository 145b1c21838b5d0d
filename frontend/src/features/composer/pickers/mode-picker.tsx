"use client";
import { BrainCircuit, ChevronDown, ListChecks, Rocket, Zap, type LucideIcon } from "lucide-react";
import { useT } from "@/i18n";
import { Button } from "@/ui/button";
import {
  DropdownMenu,
  DropdownMenuContent,
  DropdownMenuLabel,
  DropdownMenuRadioGroup,
  DropdownMenuRadioItem,
  DropdownMenuSeparator,
  DropdownMenuTrigger,
} from "@/ui/dropdown-menu";
import { EFFORTS, modesOf, takesEffort, type Effort, type Mode, type useRunChoice } from "@/lib/run-settings";

const ICONS: Record<Mode, LucideIcon> = {
  flash: Zap,
  thinking: BrainCircuit,
  pro: ListChecks,
  ultra: Rocket,
};

interface ModePickerProps {
  choice: ReturnType<typeof useRunChoice>;
  open: boolean;
  onOpenChange: (open: boolean) => void;
  onClosed: () => void;
}

/** Picker of the mode, and of the thinking effort if the model offers a choice. */
export function ModePicker({ choice, open, onOpenChange, onClosed }: ModePickerProps) {
  const t = useT("composer");
  const { mode, effort } = choice.settings;
  const Icon = ICONS[mode];
  return (
    <DropdownMenu open={open} onOpenChange={onOpenChange}>
      <DropdownMenuTrigger asChild>
        <Button
          variant="ghost"
          size="sm"
          className="gap-1 px-2 font-normal text-muted-foreground data-[state=open]:bg-accent"
          title={`${t("mode")}: ${t(`modes.${mode}`)}`}
        >
          <Icon aria-hidden />
          <span className="sr-only">{t("mode")}: </span>
          {t(`modes.${mode}`)}
          {effort && <span className="max-sm:sr-only">· {t(`efforts.${effort}`)}</span>}
          <ChevronDown aria-hidden className="size-3.5 opacity-70" />
        </Button>
      </DropdownMenuTrigger>
      <DropdownMenuContent
        align="start"
        side="top"
        className="w-80"
        onCloseAutoFocus={(event) => {
          event.preventDefault();
          onClosed();
        }}
      >
        <DropdownMenuLabel>{t("mode")}</DropdownMenuLabel>
        <DropdownMenuRadioGroup value={mode} onValueChange={(next) => choice.change({ mode: next as Mode })}>
          {modesOf(choice.model).map((one) => {
            const ModeIcon = ICONS[one];
            return (
              <DropdownMenuRadioItem key={one} value={one}>
                <ModeIcon aria-hidden />
                <span className="min-w-0">
                  <span className="block font-medium">{t(`modes.${one}`)}</span>
                  <span className="block text-xs text-muted-foreground">{t(`modeText.${one}`)}</span>
                </span>
              </DropdownMenuRadioItem>
            );
          })}
        </DropdownMenuRadioGroup>
        {takesEffort(choice.model, mode) && (
          <>
            <DropdownMenuSeparator />
            <DropdownMenuLabel>{t("effort")}</DropdownMenuLabel>
            <EffortChoice effort={effort} onChange={(next) => choice.change({ effort: next })} />
          </>
        )}
      </DropdownMenuContent>
    </DropdownMenu>
  );
}

function EffortChoice({
  effort,
  onChange,
}: {
  effort: Effort | null;
  onChange: (effort: Effort | null) => void;
}) {
  const t = useT("composer");
  return (
    <DropdownMenuRadioGroup
      value={effort ?? "auto"}
      onValueChange={(next) => onChange(next === "auto" ? null : (next as Effort))}
      className="grid grid-cols-5 gap-1 px-1 pb-1"
    >
      {(["auto", ...EFFORTS] as const).map((one) => (
        <DropdownMenuRadioItem
          key={one}
          value={one}
          onSelect={(event) => event.preventDefault()}
          className="justify-center rounded-md px-1 py-1.5 text-xs data-[state=checked]:bg-primary-soft data-[state=checked]:font-medium data-[state=checked]:text-primary [&>span:last-child:has(svg)]:hidden"
        >
          {t(`efforts.${one}`)}
        </DropdownMenuRadioItem>
      ))}
    </DropdownMenuRadioGroup>
  );
}
