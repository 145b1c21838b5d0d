"use client";
import { TriangleAlert } from "lucide-react";
import { useT } from "@/i18n";
import { Button } from "@/ui/button";
import { Difference } from "./compare";

interface Props {
  name: string;
  mine: string;
  theirs: string;
  pending: boolean;
  onKeepMine: () => void;
  onTakeTheirs: () => void;
  onBack: () => void;
}

/** Two wrote at once: both texts, and the person decides. */
export function Conflict({ name, mine, theirs, pending, onKeepMine, onTakeTheirs, onBack }: Props) {
  const t = useT("artifacts.edit");
  return (
    <div className="flex min-h-0 flex-1 flex-col">
      <div role="alert" className="flex gap-3 border-b bg-warning-soft px-4 py-3">
        <TriangleAlert aria-hidden className="mt-0.5 size-4 shrink-0 text-warning" />
        <div className="min-w-0 text-[13px] leading-relaxed">
          <p className="font-medium">{t("conflictTitle")}</p>
          <p className="text-pretty text-muted-foreground">{t("conflictText")}</p>
        </div>
      </div>
      <Difference
        before={theirs}
        after={mine}
        filename={name}
        beforeLabel={t("theirs")}
        afterLabel={t("mine")}
      />
      <footer className="flex min-h-12 flex-wrap items-center justify-end gap-2 border-t px-3 py-1.5">
        <Button variant="ghost" size="sm" onClick={onBack} className="mr-auto">
          {t("keepEditing")}
        </Button>
        <Button variant="outline" size="sm" disabled={pending} onClick={onTakeTheirs}>
          {t("takeTheirs")}
        </Button>
        <Button size="sm" pending={pending} title={t("keepMineText")} onClick={onKeepMine}>
          {t("keepMine")}
        </Button>
      </footer>
    </div>
  );
}
