"use client";
import { RotateCw, TriangleAlert } from "lucide-react";
import { useT } from "@/i18n";
import { cn } from "@/lib/cn";
import { Button } from "./button";

export interface ErrorStateProps {
  /** Its message is shown. */
  error: unknown;
  retry?: () => void;
  title?: string;
  /** In a row, for small places. */
  compact?: boolean;
  className?: string;
}

export function ErrorState({ error, retry, title, compact, className }: ErrorStateProps) {
  const t = useT("common");
  const message = error instanceof Error ? error.message : typeof error === "string" ? error : null;
  return (
    <div
      role="alert"
      className={cn(
        compact
          ? "flex flex-wrap items-center gap-x-3 gap-y-2 rounded-xl bg-destructive-soft px-3.5 py-2.5"
          : "flex flex-col items-center justify-center gap-1.5 px-6 py-12 text-center",
        className,
      )}
    >
      <TriangleAlert
        aria-hidden
        className={cn("shrink-0 text-destructive", compact ? "size-4" : "mb-2 size-6")}
      />
      <div className={cn("min-w-0", compact && "flex-1")}>
        <p className="text-sm font-medium">{title ?? t("somethingWrong")}</p>
        {message && (
          <p
            className={cn(
              "text-sm leading-relaxed break-words",
              compact ? "text-foreground/80" : "max-w-md text-muted-foreground",
            )}
          >
            {message}
          </p>
        )}
      </div>
      {retry && (
        <Button variant="outline" size="sm" className={compact ? "" : "mt-3"} onClick={retry}>
          <RotateCw aria-hidden />
          {t("retry")}
        </Button>
      )}
    </div>
  );
}
