"use client";
import { useQueryClient } from "@tanstack/react-query";
import { Ellipsis, Pencil, RotateCw, ScrollText, Trash2 } from "lucide-react";
import { useState } from "react";
import { useT } from "@/i18n";
import { ConfirmDialog } from "@/ui/dialog";
import {
  DropdownMenu,
  DropdownMenuContent,
  DropdownMenuItem,
  DropdownMenuSeparator,
  DropdownMenuTrigger,
} from "@/ui/dropdown-menu";
import { IconButton } from "@/ui/icon-button";
import { toast } from "@/ui/toast";
import * as api from "./api";
import { without } from "./entry";

interface ServerMenuProps {
  server: api.Server;
  onEdit: () => void;
  onLog: () => void;
}

export function ServerMenu({ server, onEdit, onLog }: ServerMenuProps) {
  const t = useT("mcp");
  const queries = useQueryClient();
  const change = api.useChange();
  const [removing, setRemoving] = useState(false);
  const { name } = server;
  const runs = server.state !== "off";
  const restart = async () => {
    const began = api.restart(name);
    void queries.invalidateQueries({ queryKey: api.KEYS.servers });
    try {
      const { state } = await began;
      if (state === "ready") toast.success(t("restarted", { name }));
      else toast.error(t("restartFailed", { name }));
    } catch (problem) {
      toast.error((problem as Error).message);
    }
    await queries.invalidateQueries({ queryKey: api.KEYS.servers });
  };
  const remove = async () => {
    try {
      await change((all) => without(all, name) as api.Entries);
    } catch (problem) {
      toast.error((problem as Error).message);
      throw problem;
    }
    toast.success(t("removed", { name }));
  };
  return (
    <>
      <DropdownMenu>
        <DropdownMenuTrigger asChild>
          <IconButton label={t("actions", { name })}>
            <Ellipsis aria-hidden />
          </IconButton>
        </DropdownMenuTrigger>
        <DropdownMenuContent align="end">
          <DropdownMenuItem onSelect={onEdit}>
            <Pencil aria-hidden />
            {t("edit")}
          </DropdownMenuItem>
          <DropdownMenuItem disabled={!runs} onSelect={() => void restart()}>
            <RotateCw aria-hidden />
            {t("restart")}
          </DropdownMenuItem>
          <DropdownMenuItem disabled={!runs} onSelect={onLog}>
            <ScrollText aria-hidden />
            {t("log")}
          </DropdownMenuItem>
          <DropdownMenuSeparator />
          <DropdownMenuItem destructive onSelect={() => setRemoving(true)}>
            <Trash2 aria-hidden />
            {t("remove")}
          </DropdownMenuItem>
        </DropdownMenuContent>
      </DropdownMenu>
      <ConfirmDialog
        open={removing}
        onOpenChange={setRemoving}
        title={t("removeTitle", { name })}
        text={t("removeText")}
        confirm={t("remove")}
        destructive
        onConfirm={remove}
      />
    </>
  );
}
