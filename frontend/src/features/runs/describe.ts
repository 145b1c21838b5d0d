/** Names and facts of spans in the person's language. */
import {
  Bot,
  CircleAlert,
  Clock,
  type LucideIcon,
  Plug,
  RotateCcw,
  Sparkles,
  SquareTerminal,
  UserCheck,
  Wrench,
} from "lucide-react";
import { useLocale, useT } from "@/i18n";
import type { Span } from "@/lib/api";
import { formatCost, formatBrief, formatTokens } from "@/lib/format";
import { lastedOf } from "./spans";

const ICONS: Record<Span["kind"], LucideIcon> = {
  queue: Clock,
  attempt: RotateCcw,
  model: Sparkles,
  tool: Wrench,
  agent: Bot,
  command: SquareTerminal,
  decision: UserCheck,
  retry: RotateCcw,
  notice: CircleAlert,
};

export interface Described {
  icon: LucideIcon;
  name: string;
  /** Beginning of the call or the answer. */
  detail: string;
  /** "1.2k tokens in, 40 out" and the like, the most telling first. */
  facts: string[];
  lasted: string;
}

/** Reason for which a model is asked again, or another one. */
const REASONS = ["busy", "network", "broken_off"] as const;
const NOTICES = ["spending_limit", "acceptance_checks"] as const;
/** Details of these are for logs. */
const WORDLESS = new Set<Span["kind"]>(["queue", "attempt"]);

export function useDescribe(elapsed: number): (span: Span) => Described {
  const t = useT("runs");
  const [locale] = useLocale();
  const names: Partial<Record<Span["kind"], (span: Span) => string>> = {
    queue: () => t("queue"),
    attempt: () => t("attempt"),
    model: (span) => (span.message_id === undefined && span.detail ? t("summary") : span.name || t("model")),
    retry: () => t("retry"),
    decision: (span) => t("decision", { name: span.name }),
    notice: ({ name }) => t(`notice.${NOTICES.find((one) => one === name) ?? "other"}`),
    agent: (span) => span.detail || span.name,
  };
  const time = (milliseconds: number) => formatBrief(milliseconds, locale);
  const factsOf = (span: Span): string[] => {
    const { input_tokens: input, cached_tokens: cached, output_tokens: output, cost } = span;
    const first = span.first_token_ms == null ? null : Math.max(0, span.first_token_ms - span.start_ms);
    const percent = new Intl.NumberFormat(locale, { style: "percent" }).format((cached ?? 0) / (input || 1));
    const { amount, currency } = (cost ?? {}) as { amount?: number; currency?: string };
    return [
      span.status === "success" ? "" : statusOf(span.status),
      first === null ? "" : t("firstToken", { time: time(first) }),
      input || output
        ? t("tokens", { input: formatTokens(input ?? 0), output: formatTokens(output ?? 0) })
        : "",
      cached ? t("cached", { percent }) : "",
      amount === undefined ? "" : t("cost", { cost: formatCost(amount, currency ?? null, locale) }),
      span.server ? t("server", { name: span.server }) : "",
      span.exit_code ? t("exit", { code: span.exit_code }) : "",
    ].filter(Boolean);
  };
  const detailOf = ({ kind, name, detail }: Span): string => {
    if (kind === "agent") return name;
    if (kind === "retry") return t(`why.${REASONS.find((one) => one === name) ?? "other"}`);
    return WORDLESS.has(kind) ? "" : detail;
  };
  const statusOf = (status: string) =>
    t.has(`status.${status}` as "status.error") ? t(`status.${status}` as "status.error") : status;
  return (span) => ({
    icon: span.server ? Plug : ICONS[span.kind],
    name: names[span.kind]?.(span) ?? span.name,
    detail: detailOf(span),
    facts: factsOf(span),
    lasted: span.status === "waiting" || span.end_ms === span.start_ms ? "" : time(lastedOf(span, elapsed)),
  });
}
