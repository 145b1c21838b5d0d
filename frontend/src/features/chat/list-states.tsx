"use client";
import { MessageCircleOff } from "lucide-react";
import { useT } from "@/i18n";
import type { ApiError } from "@/lib/http";
import { openThread } from "@/lib/route";
import { Button } from "@/ui/button";
import { EmptyState } from "@/ui/empty-state";
import { ErrorState } from "@/ui/error-state";
import { Skeleton } from "@/ui/skeleton";

const WIDTHS = ["w-11/12", "w-full", "w-4/5", "w-2/3"];

/** As much as a thread will show, in its places. */
export function LoadingTurns() {
  const t = useT("chat");
  return (
    <div role="status" className="min-h-0 flex-1 overflow-hidden">
      <span className="sr-only">{t("loading")}</span>
      <div className="mx-auto flex w-full max-w-3xl flex-col gap-6 px-4 pt-8 sm:px-6">
        {[0, 1].map((turn) => (
          <div key={turn} className="flex flex-col gap-5">
            <Skeleton className="h-11 w-2/5 self-end rounded-2xl" />
            <Skeleton className="h-4 w-40" />
            <div className="flex flex-col gap-2.5">
              {WIDTHS.map((width) => (
                <Skeleton key={width} className={`h-4 ${width}`} />
              ))}
            </div>
          </div>
        ))}
      </div>
    </div>
  );
}

export function ThreadMissing() {
  const t = useT("chat");
  return (
    <EmptyState
      className="flex-1"
      icon={<MessageCircleOff />}
      title={t("missing")}
      text={t("missingText")}
      action={
        <Button size="sm" onClick={() => openThread(null)}>
          {t("newChat")}
        </Button>
      }
    />
  );
}

export function ThreadFailed({ error, retry }: { error: ApiError | null; retry: () => void }) {
  const t = useT("chat");
  return <ErrorState className="flex-1" title={t("failed")} error={error} retry={retry} />;
}
