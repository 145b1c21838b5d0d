"use client";
import { useT } from "@/i18n";
import { formatTokens } from "@/lib/format";
import { SimpleTooltip } from "@/ui/tooltip";
import type { TokenUsage } from "../thread/message";
import { useCost } from "./use-cost";

/** Tokens and money of a turn in one line; what they are made of on hover. */
export function Usage({ usage }: { usage: TokenUsage }) {
  const t = useT("chat.usage");
  const cost = useCost();
  const shown = [t("tokens", { n: formatTokens(usage.total) }), usage.cost !== null && cost(usage.cost)];
  return (
    <SimpleTooltip label={<UsageTable usage={usage} />}>
      <button
        type="button"
        className="rounded-md px-1.5 py-1 text-xs whitespace-nowrap text-muted-foreground tabular-nums"
      >
        <span className="sr-only">{t("label")}: </span>
        {shown.filter(Boolean).join(" · ")}
      </button>
    </SimpleTooltip>
  );
}

export function UsageTable({ usage }: { usage: TokenUsage }) {
  const t = useT("chat.usage");
  const cost = useCost();
  const rows: [string, string][] = [
    [t("input"), usage.input.toLocaleString()],
    [t("output"), usage.output.toLocaleString()],
    [t("total"), usage.total.toLocaleString()],
  ];
  if (usage.cost !== null) rows.push([t("cost"), cost(usage.cost)]);
  return (
    <dl className="grid grid-cols-[auto_auto] gap-x-4 tabular-nums">
      {rows.map(([name, value]) => (
        <div key={name} className="contents">
          <dt className="opacity-75">{name}</dt>
          <dd className="text-right">{value}</dd>
        </div>
      ))}
    </dl>
  );
}
