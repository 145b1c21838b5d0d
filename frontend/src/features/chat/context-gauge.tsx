"use client";
import { useT } from "@/i18n";
import { cn } from "@/lib/cn";
import { formatTokens } from "@/lib/format";
import { SimpleTooltip } from "@/ui/tooltip";
import { useSession } from "./session";
import { UsageTable } from "./usage";

const RADIUS = 6.5;
const ROUND = 2 * Math.PI * RADIUS;

/** How full the model's context is, as a small ring; what the conversation has used so far on hover. */
export function ContextGauge() {
  const t = useT("chat.usage");
  const { context, usage } = useSession();
  if (!context?.window) return null;
  const { used, window } = context;
  const part = Math.min(1, used / window);
  const tone = part < 0.75 ? "text-primary" : part < 0.9 ? "text-warning" : "text-destructive";
  const name = t("context", { percent: Math.round(part * 100) });
  const tooltip = (
    <div className="flex flex-col gap-1.5 py-1">
      <div>
        <p className="font-medium">{name}</p>
        <p className="opacity-75">
          {t("contextOf", { used: formatTokens(used), window: formatTokens(window) })}
        </p>
        {part >= 0.9 && <p>{t("contextFull")}</p>}
      </div>
      {usage && (
        <div className="border-t border-background/20 pt-1.5">
          <p className="font-medium">{t("threadCost")}</p>
          <UsageTable usage={usage} />
        </div>
      )}
    </div>
  );
  return (
    <SimpleTooltip label={tooltip}>
      <button
        type="button"
        aria-label={name}
        className="flex size-8 items-center justify-center rounded-md transition-colors hover:bg-accent pointer-coarse:size-10"
      >
        <svg aria-hidden viewBox="0 0 16 16" className={cn("size-4 -rotate-90", tone)}>
          <circle cx="8" cy="8" r={RADIUS} fill="none" strokeWidth="2.5" className="stroke-border" />
          <circle
            cx="8"
            cy="8"
            r={RADIUS}
            fill="none"
            stroke="currentColor"
            strokeWidth="2.5"
            strokeLinecap="round"
            strokeDasharray={`${Math.max(0.02, part) * ROUND} ${ROUND}`}
          />
        </svg>
      </button>
    </SimpleTooltip>
  );
}
