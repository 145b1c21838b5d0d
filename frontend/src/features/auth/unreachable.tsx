"use client";
import { RotateCw, Unplug } from "lucide-react";
import { useT } from "@/i18n";
import { Button } from "@/ui/button";

export function Unreachable({ trying, retry }: { trying: boolean; retry: () => void }) {
  const t = useT("auth");
  const common = useT("common");
  return (
    <main className="flex min-h-dvh flex-col items-center justify-center gap-2 p-6 text-center">
      <div className="mb-3 flex size-12 items-center justify-center rounded-2xl bg-warning-soft text-warning">
        <Unplug aria-hidden className="size-6" />
      </div>
      <h1 className="text-2xl font-semibold">{t("unreachableTitle")}</h1>
      <p role="status" className="max-w-sm leading-relaxed text-muted-foreground">
        {t("unreachableText")}
      </p>
      <p className="text-[13px] text-muted-foreground">
        {t.rich("unreachableHint", {
          command: (text) => <code className="rounded bg-muted px-1.5 py-0.5 font-mono text-xs">{text}</code>,
        })}
      </p>
      <Button variant="outline" className="mt-4 min-w-36" onClick={retry} aria-busy={trying}>
        <RotateCw aria-hidden className={trying ? "animate-spin" : ""} />
        {trying ? t("unreachableTrying") : common("retry")}
      </Button>
    </main>
  );
}
