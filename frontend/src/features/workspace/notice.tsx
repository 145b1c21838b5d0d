"use client";
import { useQuery } from "@tanstack/react-query";
import { Megaphone, X } from "lucide-react";
import { useT } from "@/i18n";
import { site } from "@/lib/api";
import { keys } from "@/lib/keys";
import { own, useStored } from "@/lib/storage";
import { IconButton } from "@/ui/icon-button";

const STALE_MS = 60_000;

/** Notice of the administrators for everybody. A closed notice returns only with a new text. */
export default function Notice() {
  const t = useT("common");
  const { data } = useQuery({
    queryKey: keys.site,
    queryFn: site,
    staleTime: STALE_MS,
    refetchInterval: STALE_MS,
  });
  const [closed, close] = useStored<string | null>(own("closedNotice"), null);
  const notice = data?.notice;
  return (
    <div role="status">
      {notice && notice !== closed && (
        <div className="flex items-center gap-2.5 bg-primary-soft px-4 py-1.5 text-sm print:hidden">
          <Megaphone aria-hidden className="size-4 shrink-0 text-primary" />
          <p className="max-h-24 min-w-0 flex-1 overflow-y-auto py-0.5 break-words whitespace-pre-line">
            {notice}
          </p>
          <IconButton label={t("close")} className="-my-0.5 size-7" onClick={() => close(notice)}>
            <X aria-hidden />
          </IconButton>
        </div>
      )}
    </div>
  );
}
