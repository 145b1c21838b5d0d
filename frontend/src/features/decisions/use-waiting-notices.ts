"use client";
import { useEffect, useEffectEvent, useRef } from "react";
import { showNotice } from "@/features/notifications";
import { useT } from "@/i18n";
import type { WaitingThread } from "@/lib/api";
import { useThreadId } from "@/lib/route";
import { useWaiting } from "@/lib/waiting";
import { toast } from "@/ui/toast";
import { setInbox } from "./open";

/**
 * Calls the person when another conversation than the one on the screen begins to wait: by a notice in the page, or by one of
 * the system while they look elsewhere. `quiet`: they see the list anyway.
 */
export function useWaitingNotices(quiet: boolean) {
  const t = useT("decisions.inbox");
  const common = useT("common");
  const current = useThreadId();
  const { data } = useWaiting();
  const known = useRef<ReadonlyMap<string, string> | null>(null);

  const call = useEffectEvent(({ thread_id: id, title }: WaitingThread) => {
    if (id === current) return;
    const text = t("notice", { title: title ?? common("untitled") });
    if (document.visibilityState !== "visible") showNotice(text, "", id);
    else if (!quiet) toast.warning(text, { action: { label: t("show"), run: () => setInbox(true) } });
  });
  useEffect(() => {
    if (!data) return;
    const before = known.current;
    known.current = new Map(data.map((one) => [one.thread_id, one.since]));
    if (before) data.filter((one) => before.get(one.thread_id) !== one.since).forEach(call);
  }, [data]);
}
