"use client";
import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { useT } from "@/i18n";
import { keys } from "@/lib/keys";
import { Badge } from "@/ui/badge";
import { Button } from "@/ui/button";
import { ConfirmDialog } from "@/ui/dialog";
import { toast } from "@/ui/toast";
import { disconnect, type Connection } from "./api";
import { Group, Panel } from "../parts";

/** Place of its key. A connection without a key has nothing encrypted. */
export function Place({ of: { place, has_key } }: { of: Connection }) {
  const t = useT("models.connect.place");
  return place && (has_key || place === "environment") && <Badge variant="secondary">{t(place)}</Badge>;
}

/** Connected providers, and the places of their keys. */
export function ConnectionList({ connections }: { connections: Connection[] }) {
  const t = useT("models.connect");
  const queries = useQueryClient();
  const [leaving, setLeaving] = useState<Connection | null>(null);
  const connected = connections.filter((one) => one.place);
  if (connected.length === 0) return null;
  const leave = async (connection: Connection) => {
    try {
      await disconnect(connection.id);
    } catch (problem) {
      toast.error((problem as Error).message);
      throw problem;
    }
    toast.success(t("gone", { provider: connection.title }));
    await Promise.all(
      [keys.models, keys.connections].map((queryKey) => queries.invalidateQueries({ queryKey })),
    );
  };
  return (
    <Group title={t("connected")}>
      <Panel role="list">
        {connected.map((one) => (
          <div key={one.id} role="listitem" className="flex items-center gap-4 px-4 py-3 sm:px-5">
            <div className="min-w-0 flex-1">
              <div className="flex flex-wrap items-center gap-x-2 gap-y-1">
                <span className="font-medium">{one.title}</span>
                <Place of={one} />
              </div>
              <p className="mt-0.5 text-xs leading-relaxed break-words text-muted-foreground">
                {one.base_url ?? one.variable}
                {one.place === "environment" && ` · ${t("outside")}`}
              </p>
            </div>
            {one.place !== "environment" && (
              <Button
                variant="outline"
                size="sm"
                onClick={() => setLeaving(one)}
                aria-label={`${t("disconnect")}: ${one.title}`}
              >
                {t("disconnect")}
              </Button>
            )}
          </div>
        ))}
      </Panel>
      <ConfirmDialog
        open={leaving !== null}
        onOpenChange={(open) => !open && setLeaving(null)}
        title={t("disconnectTitle", { provider: leaving?.title ?? "" })}
        text={t(leaving?.kind === "search" ? "disconnectSearchText" : "disconnectText")}
        confirm={t("disconnect")}
        destructive
        onConfirm={() => leaving && leave(leaving)}
      />
    </Group>
  );
}
