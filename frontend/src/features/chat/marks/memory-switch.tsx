"use client";
import { useId } from "react";
import { useT } from "@/i18n";
import { cn } from "@/lib/cn";
import { useSwitches } from "@/lib/switches";
import { Switch } from "@/ui/switch";
import { useAction } from "../use-action";

/** Memory in this chat: on or off. */
export function MemorySwitch({ threadId, className }: { threadId: string; className?: string }) {
  const t = useT("details.memory");
  const id = useId();
  const { known, temporary, isOn, set } = useSwitches(threadId);
  const { pending, error, run } = useAction();
  return (
    <div className={cn("flex flex-col gap-1", className)}>
      <div className="flex items-center justify-between gap-3">
        <label htmlFor={id} className="text-[13px] font-medium">
          {t("active")}
        </label>
        <Switch
          id={id}
          checked={known && isOn("memory")}
          disabled={pending || !known || temporary}
          onCheckedChange={(on) => void run(() => set("memory", on))}
        />
      </div>
      <p className="text-xs text-pretty text-muted-foreground">{t("activeText")}</p>
      {error && (
        <p role="alert" className="text-xs text-destructive">
          {error}
        </p>
      )}
    </div>
  );
}
