"use client";
import { WifiOff } from "lucide-react";
import { useT } from "@/i18n";
import { useSession } from "./thread/session";

/** Says that what is shown may be old; everything comes back by itself. */
export function ConnectionBanner() {
  const t = useT("common");
  const { connection } = useSession();
  return (
    <div role="status" aria-live="polite">
      {connection === "retrying" && (
        <p className="flex items-center justify-center gap-2 bg-warning-soft px-4 py-1.5 text-sm text-warning">
          <WifiOff className="size-4 shrink-0" aria-hidden />
          {t("connectionLost")}
        </p>
      )}
    </div>
  );
}
