"use client";
import { MessageSquareText } from "lucide-react";
import { useT } from "@/i18n";
import { Button } from "@/ui/button";
import type { Described } from "./describe";
import type { Row } from "./spans";

interface SpanDetailsProps {
  row: Row | null;
  described: Described | null;
  onShow: (row: Row) => void;
}

/** Facts of the chosen span. The tree gives the same to screen readers. */
export function SpanDetails({ row, described, onShow }: SpanDetailsProps) {
  const t = useT("runs");
  return (
    <div className="flex min-h-16 shrink-0 items-center gap-3 border-t px-4 py-2.5 text-[13px]">
      {row && described ? (
        <>
          <div className="min-w-0 flex-1">
            <p className="truncate">
              <span className="font-medium">{described.name}</span>
              {described.detail && <span className="ml-2 text-muted-foreground">{described.detail}</span>}
            </p>
            <p className="text-xs leading-5 text-muted-foreground tabular-nums">
              {[described.lasted, ...described.facts].filter(Boolean).join(" · ") || t("status.success")}
            </p>
          </div>
          <Button variant="outline" size="sm" onClick={() => onShow(row)}>
            <MessageSquareText aria-hidden />
            {t("show")}
          </Button>
        </>
      ) : (
        <p className="text-xs text-muted-foreground">{t("hint")}</p>
      )}
    </div>
  );
}
