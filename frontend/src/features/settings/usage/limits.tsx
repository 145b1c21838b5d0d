"use client";
import { useQuery } from "@tanstack/react-query";
import { useT } from "@/i18n";
import { cn } from "@/lib/cn";
import { keys } from "@/lib/keys";
import { Group, Panel } from "../parts";
import { limits, type Limit } from "./report";

interface LimitsProps {
  money: (amount: number, currency: string) => string;
  tokens: (count: number) => string;
}

/** Limits of the configuration, and today's share of each. Renders nothing without limits. */
export function Limits({ money, tokens }: LimitsProps) {
  const t = useT("usage");
  const { data } = useQuery({ queryKey: keys.limits, queryFn: limits });
  if (!data?.length) return null;
  return (
    <Group title={t("limits")}>
      <Panel>
        {data.map((limit) => (
          <LimitRow
            key={limit.scope + limit.unit}
            limit={limit}
            format={(value) =>
              limit.unit === "tokens" ? t("tokens", { n: tokens(value) }) : money(value, limit.unit)
            }
          />
        ))}
      </Panel>
    </Group>
  );
}

function LimitRow({
  limit: { scope, limit, used },
  format,
}: {
  limit: Limit;
  format: (value: number) => string;
}) {
  const t = useT("usage");
  const part = used === null ? 0 : Math.min(1, used / limit);
  const tone = part < 0.75 ? "bg-primary" : part < 1 ? "bg-warning" : "bg-destructive";
  const name = t(`scope.${scope}`);
  return (
    <div className="flex flex-col gap-2 px-4 py-3 text-sm sm:px-5">
      <div className="flex flex-wrap justify-between gap-x-6 gap-y-0.5">
        <span className="font-medium">{name}</span>
        <span className="text-muted-foreground tabular-nums">
          {used === null ? format(limit) : t("usedOf", { used: format(used), limit: format(limit) })}
        </span>
      </div>
      {used !== null && (
        <div
          role="meter"
          aria-label={name}
          aria-valuemin={0}
          aria-valuemax={limit}
          aria-valuenow={Math.min(used, limit)}
          aria-valuetext={t("usedOf", { used: format(used), limit: format(limit) })}
          className="h-2 overflow-hidden rounded-full bg-muted"
        >
          <div className={cn("h-full rounded-full", tone)} style={{ width: `${100 * part}%` }} />
        </div>
      )}
    </div>
  );
}
