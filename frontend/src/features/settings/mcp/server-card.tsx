"use client";
import { ChevronDown } from "lucide-react";
import { useMutation } from "@tanstack/react-query";
import { useState } from "react";
import { useT } from "@/i18n";
import { Badge } from "@/ui/badge";
import { Button } from "@/ui/button";
import { Collapsible, CollapsibleContent, CollapsibleTrigger } from "@/ui/collapsible";
import { Switch } from "@/ui/switch";
import { toast } from "@/ui/toast";
import { useChange, type Server } from "./api";
import { Changes } from "./changes";
import { Connection } from "./connection";
import { isProgram, reachOf, type Entry } from "./entry";
import { useFailure } from "./failure";
import { LogDialog } from "./log-dialog";
import { ServerMenu } from "./server-menu";
import { ToolRow } from "./tool-row";

interface ServerCardProps {
  server: Server;
  /** null for those who may only use it. */
  entry: Entry | null;
  onEdit: () => void;
}

export function ServerCard({ server, entry, onEdit }: ServerCardProps) {
  const t = useT("mcp");
  const change = useChange();
  const failure = useFailure();
  const [log, setLog] = useState(false);
  const { name } = server;
  const turn = useMutation({
    mutationFn: (enabled: boolean) => change((all) => ({ ...all, [name]: { ...all[name], enabled } })),
    onError: (problem) => toast.error(problem.message),
  });
  const isOn = turn.isPending ? turn.variables : server.state !== "off" || entry?.enabled !== false;
  const isProblem = server.state === "failed" && server.error;
  return (
    <div role="listitem" aria-label={name} className="flex flex-col gap-2.5 px-4 py-4 sm:px-5">
      <div className="flex items-start gap-3">
        <div className="min-w-0 flex-1">
          <div className="flex flex-wrap items-center gap-x-2 gap-y-1">
            <h2 className="min-w-0 font-medium break-words">{name}</h2>
            <State server={server} isOn={isOn} />
            {server.trusted && <Badge variant="outline">{t("trusted")}</Badge>}
          </div>
          {server.description && (
            <p className="mt-0.5 text-[13px] leading-relaxed break-words text-muted-foreground">
              {server.description}
            </p>
          )}
          {entry && <Reach entry={entry} />}
        </div>
        {entry && (
          <div className="flex h-8 shrink-0 items-center gap-2 pointer-coarse:h-11">
            <Switch checked={isOn} onCheckedChange={(on) => turn.mutate(on)} aria-label={t("on", { name })} />
            <ServerMenu server={server} onEdit={onEdit} onLog={() => setLog(true)} />
          </div>
        )}
      </div>
      {isProblem && (
        <p className="text-[13px] leading-relaxed break-words text-destructive">
          {failure(server)}{" "}
          {entry && (
            <Button
              variant="link"
              className="h-auto p-0 text-[13px] pointer-coarse:h-auto"
              onClick={() => setLog(true)}
            >
              {t("log")}
            </Button>
          )}
        </p>
      )}
      {server.connection && isOn && <Connection server={server} />}
      {entry && isOn && server.changes > 0 && <Changes server={server} />}
      {server.tools.length > 0 && <Tools server={server} canChange={entry !== null} />}
      {entry && <LogDialog name={name} open={log} onOpenChange={setLog} />}
    </div>
  );
}

function State({ server, isOn }: { server: Server; isOn: boolean }) {
  const t = useT("mcp.state");
  const state = !isOn ? "off" : server.connection === "needed" ? "needed" : server.state;
  if (state === "failed") return <Badge variant="destructive">{t("failed")}</Badge>;
  if (state === "needed") return <Badge variant="warning">{t("needed")}</Badge>;
  if (state === "ready")
    return <Badge variant="success">{t(server.connection ? "connected" : "ready")}</Badge>;
  return <Badge variant="secondary">{t(state === "off" && !isOn ? "off" : "starting")}</Badge>;
}

/** Address of a server, or the reach of its program. */
function Reach({ entry }: { entry: Entry }) {
  const t = useT("mcp");
  if (!isProgram(entry))
    return <p className="mt-1 font-mono text-xs break-all text-muted-foreground">{entry.url}</p>;
  const { onHost, network, mounts } = reachOf(entry);
  const known = network === "none" || network === "allowlist" || network === "host" ? network : "internet";
  const facts = [
    t("reach.sandbox"),
    t(`reach.network.${known}`),
    ...(mounts > 0 ? [t("reach.mounts", { n: mounts })] : []),
  ];
  return (
    <div className="mt-1 flex flex-col gap-0.5 text-xs leading-relaxed text-muted-foreground">
      <p className="font-mono break-all">{[entry.command, ...(entry.args ?? [])].join(" ")}</p>
      <p className={onHost ? "text-warning" : undefined}>{onHost ? t("reach.host") : facts.join(" · ")}</p>
    </div>
  );
}

function Tools({ server, canChange }: { server: Server; canChange: boolean }) {
  const t = useT("mcp");
  return (
    <Collapsible>
      <CollapsibleTrigger className="group -ml-2 flex h-8 items-center gap-1.5 rounded-lg px-2 text-[13px] font-medium text-muted-foreground hover:bg-accent hover:text-foreground pointer-coarse:h-11">
        <ChevronDown
          aria-hidden
          className="size-4 transition-transform group-data-[state=closed]:-rotate-90 motion-reduce:transition-none"
        />
        {t("tools", { n: server.tools.length })}
      </CollapsibleTrigger>
      <CollapsibleContent>
        <div role="list" className="mt-1.5 divide-y rounded-lg border">
          {server.tools.map((tool) => (
            <ToolRow key={tool.name} server={server.name} tool={tool} canChange={canChange} />
          ))}
        </div>
        {canChange && <p className="mt-2 text-xs leading-relaxed text-muted-foreground">{t("policyHint")}</p>}
      </CollapsibleContent>
    </Collapsible>
  );
}
