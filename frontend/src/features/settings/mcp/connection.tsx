"use client";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useT } from "@/i18n";
import { isWeb } from "@/lib/web";
import { Button } from "@/ui/button";
import { toast } from "@/ui/toast";
import * as api from "./api";

/** One's own connection to a server: allowed on its website, which leads back here. */
export function Connection({ server }: { server: api.Server }) {
  const t = useT("mcp");
  const queries = useQueryClient();
  const { name } = server;
  const failed = (problem: Error) => toast.error(problem.message);
  const connect = useMutation({
    mutationFn: async () => {
      const address = await api.connect(name);
      if (!isWeb(address)) throw new Error(t("badAddress"));
      window.location.assign(address);
    },
    onError: failed,
  });
  const disconnect = useMutation({
    mutationFn: () => api.disconnect(name),
    onSuccess: () => toast.success(t("disconnected", { name })),
    onError: failed,
    onSettled: () => queries.invalidateQueries({ queryKey: api.KEYS.servers }),
  });
  if (server.connection === "connected")
    return (
      <Button
        variant="outline"
        size="sm"
        className="self-start"
        pending={disconnect.isPending}
        onClick={() => disconnect.mutate()}
        aria-label={t("disconnectOf", { name })}
      >
        {t("disconnect")}
      </Button>
    );
  return (
    <div className="flex flex-wrap items-center gap-x-4 gap-y-2 rounded-lg bg-muted px-3 py-2.5">
      <p className="min-w-0 flex-1 basis-56 text-[13px] leading-relaxed text-muted-foreground">
        {t("connectText")}
      </p>
      <Button
        size="sm"
        pending={connect.isPending || connect.isSuccess}
        onClick={() => connect.mutate()}
        aria-label={t("connectOf", { name })}
      >
        {t("connect")}
      </Button>
    </div>
  );
}
