"use client";
import { useMutation } from "@tanstack/react-query";
import { useT } from "@/i18n";
import { Badge } from "@/ui/badge";
import { Select, SelectContent, SelectItem, SelectTrigger, SelectValue } from "@/ui/select";
import { Switch } from "@/ui/switch";
import { toast } from "@/ui/toast";
import { useChange, type Tool } from "./api";
import { withTool, type Policy } from "./entry";

interface ToolRowProps {
  server: string;
  tool: Tool;
  canChange: boolean;
}

const POLICIES = ["auto", "allow", "ask", "deny"] as const;

export function ToolRow({ server, tool, canChange }: ToolRowProps) {
  const t = useT("mcp");
  const change = useChange();
  const set = useMutation({
    mutationFn: (next: { enabled: boolean; policy: Policy | null }) =>
      change((all) => ({ ...all, [server]: withTool(all[server] ?? {}, tool.name, next) })),
    onError: (problem) => toast.error(problem.message),
  });
  const { enabled, policy } = set.isPending ? set.variables : tool;
  return (
    <div role="listitem" className="flex flex-col gap-2 px-3 py-2.5 sm:flex-row sm:items-center sm:gap-4">
      <div className="min-w-0 flex-1">
        <p className="flex flex-wrap items-center gap-x-2 gap-y-1">
          <span className="font-mono text-xs font-medium break-all">{tool.name}</span>
          {tool.read_only && <Badge variant="outline">{t("readOnly")}</Badge>}
          {tool.change && <Badge variant="warning">{t(`change.${tool.change}`)}</Badge>}
          {!canChange && !enabled && <Badge variant="secondary">{t("state.off")}</Badge>}
        </p>
        <p className="mt-0.5 line-clamp-3 text-xs leading-relaxed break-words text-muted-foreground">
          {tool.description}
        </p>
        {tool.note && <p className="mt-0.5 text-xs leading-relaxed break-words text-warning">{tool.note}</p>}
      </div>
      {canChange && tool.called !== null && (
        <div className="flex items-center justify-between gap-3">
          <Select
            value={policy ?? "auto"}
            disabled={!enabled}
            onValueChange={(next) =>
              set.mutate({ enabled, policy: next === "auto" ? null : (next as Policy) })
            }
          >
            <SelectTrigger aria-label={t("policyOf", { name: tool.name })} className="w-36 text-[13px]">
              <SelectValue />
            </SelectTrigger>
            <SelectContent>
              {POLICIES.map((one) => (
                <SelectItem key={one} value={one}>
                  {t(`policy.${one}`)}
                </SelectItem>
              ))}
            </SelectContent>
          </Select>
          <Switch
            checked={enabled}
            onCheckedChange={(on) => set.mutate({ enabled: on, policy })}
            aria-label={t("toolOn", { name: tool.name })}
          />
        </div>
      )}
    </div>
  );
}
