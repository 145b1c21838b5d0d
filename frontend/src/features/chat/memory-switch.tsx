"use client";
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useId } from "react";
import { useT } from "@/i18n";
import { threadApi, type FoundThread } from "@/lib/api";
import { cn } from "@/lib/cn";
import { http } from "@/lib/http";
import { keys } from "@/lib/keys";
import { Switch } from "@/ui/switch";
import { useAction } from "./use-action";

/** As the harness reads it from the thread's metadata. */
const PAUSED = "memory_paused";

/** Whether the person has paused memory in a thread; undefined: not known yet. */
export const usePaused = (threadId: string) =>
  useQuery({
    queryKey: keys.memoryPaused(threadId),
    queryFn: async () => {
      const body = { ids: [threadId], select: ["metadata"], limit: 1 };
      const [found] = await http.post<FoundThread[]>("/api/threads/search", body);
      return found?.metadata?.[PAUSED] === true;
    },
  }).data;

/** Memory in this chat: on or paused. */
export function MemorySwitch({ threadId, className }: { threadId: string; className?: string }) {
  const t = useT("details.memory");
  const id = useId();
  const queries = useQueryClient();
  const paused = usePaused(threadId);
  const { pending, error, run } = useAction();
  const set = (active: boolean) =>
    run(async () => {
      await http.patch(threadApi(threadId), { metadata: { [PAUSED]: !active } });
      queries.setQueryData(keys.memoryPaused(threadId), !active);
    });
  return (
    <div className={cn("flex flex-col gap-1", className)}>
      <div className="flex items-center justify-between gap-3">
        <label htmlFor={id} className="text-[13px] font-medium">
          {t("active")}
        </label>
        <Switch
          id={id}
          checked={paused === false}
          disabled={pending || paused === undefined}
          onCheckedChange={(active) => void set(active)}
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
