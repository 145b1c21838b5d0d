"use client";
import { useQuery } from "@tanstack/react-query";
import { ChartColumn, Download, Info } from "lucide-react";
import { useState } from "react";
import { useAccount } from "@/features/auth";
import { useLocale, useT } from "@/i18n";
import { downloadText } from "@/lib/export";
import { formatCost, formatTokens } from "@/lib/format";
import { keys } from "@/lib/keys";
import { Button } from "@/ui/button";
import { EmptyState } from "@/ui/empty-state";
import { SegmentedControl } from "@/ui/segmented";
import { Select, SelectContent, SelectItem, SelectTrigger, SelectValue } from "@/ui/select";
import { users } from "../users/api";
import { Group, Note, Panel, Waiting } from "../parts";
import { Chart } from "./chart";
import { FiguresTable } from "./figures-table";
import { Limits } from "./limits";
import {
  csvOf,
  currenciesOf,
  perDay,
  RANGES,
  usage,
  type By,
  type Figures,
  type Range,
  type Whose,
} from "./report";

/** Usage of models and its cost: own figures, and for administrators those of others. */
export default function UsageSection() {
  const t = useT("usage");
  const isAdmin = useAccount().data?.system_role === "admin";
  const [days, setDays] = useState<Range>(30);
  const [whose, setWhose] = useState<Whose>("me");
  const people = useQuery({ queryKey: keys.users, queryFn: users, enabled: isAdmin });
  const known = new Map((people.data ?? []).map(({ id, email }) => [id, email]));
  return (
    <>
      <div className="flex flex-wrap items-center gap-3">
        <SegmentedControl
          label={t("range")}
          size="sm"
          value={String(days)}
          onValueChange={(value) => setDays(Number(value) as Range)}
          options={RANGES.map((n) => ({ value: String(n), label: t("days", { n }) }))}
        />
        {isAdmin && (
          <Select value={whose} onValueChange={setWhose}>
            <SelectTrigger aria-label={t("whose")} className="w-full sm:ml-auto sm:w-56">
              <SelectValue />
            </SelectTrigger>
            <SelectContent>
              <SelectItem value="me">{t("me")}</SelectItem>
              <SelectItem value="everyone">{t("everyone")}</SelectItem>
              {[...known].map(([id, email]) => (
                <SelectItem key={id} value={id}>
                  {email}
                </SelectItem>
              ))}
            </SelectContent>
          </Select>
        )}
      </div>
      <UsageOf days={days} whose={whose} people={known} />
    </>
  );
}

interface UsageOfProps {
  days: Range;
  whose: Whose;
  people: ReadonlyMap<string, string>;
}

function UsageOf({ days, whose, people }: UsageOfProps) {
  const t = useT("usage");
  const [locale] = useLocale();
  const [measure, setMeasure] = useState<"money" | "tokens" | null>(null);
  const [chosen, setBy] = useState<By>("day");
  const by = chosen === "person" && whose !== "everyone" ? "day" : chosen;
  const daily = useReport("day", days, whose);
  const table = useReport(by, days, whose);

  const money = (amount: number, currency: string) => formatCost(amount, currency, locale);
  const cost = ({ cost: sums }: Figures) =>
    Object.entries(sums)
      .map(([currency, amount]) => money(amount, currency))
      .join(" + ") || "–";
  const date = new Intl.DateTimeFormat(locale, { dateStyle: "medium", timeZone: "UTC" });
  const nameOf = (key: string) => {
    if (by === "day") return date.format(new Date(key));
    if (by === "agent" && key === "lead_agent") return t("defaultAgent");
    return by === "person" ? (people.get(key) ?? t("gone", { id: key })) : key;
  };

  const report = daily.data;
  if (!report) return <Waiting error={daily.error} retry={daily.refetch} />;
  const [currency] = currenciesOf(report);
  const shown = measure ?? (currency ? "money" : "tokens");
  const { total } = report;
  const save = () =>
    table.data &&
    downloadText(
      `deerflow-usage-${by}-${report.since}-${report.until}.csv`,
      `\ufeff${csvOf(table.data, by === "day" ? (key) => key : nameOf)}`,
      "text/csv;charset=utf-8",
    );
  return (
    <>
      <dl className="grid grid-cols-2 gap-px overflow-hidden rounded-xl border bg-border sm:grid-cols-4">
        <Sum name={t("column.cost")} value={cost(total)} />
        <Sum name={t("column.input")} value={formatTokens(total.input_tokens)} />
        <Sum name={t("column.output")} value={formatTokens(total.output_tokens)} />
        <Sum name={t("column.calls")} value={new Intl.NumberFormat(locale).format(total.calls)} />
      </dl>
      {total.calls === 0 ? (
        <Panel>
          <EmptyState icon={<ChartColumn />} title={t("none")} text={t("noneText")} />
        </Panel>
      ) : (
        <Group
          title={t("perDay")}
          action={
            currency && (
              <SegmentedControl
                label={t("measure")}
                size="sm"
                value={shown}
                onValueChange={setMeasure}
                options={[
                  { value: "money", label: t("column.cost") },
                  { value: "tokens", label: t("column.tokens") },
                ]}
              />
            )
          }
        >
          <Panel>
            <Chart
              days={perDay(report, (row) =>
                shown === "money" ? (row.cost[currency ?? ""] ?? 0) : row.total_tokens,
              )}
              format={(value) => (shown === "money" ? money(value, currency ?? "") : formatTokens(value))}
            />
          </Panel>
        </Group>
      )}
      {total.unpriced_calls > 0 && (
        <Note icon={<Info aria-hidden />}>{t("unpriced", { n: total.unpriced_calls })}</Note>
      )}
      {total.estimated_calls > 0 && (
        <Note icon={<Info aria-hidden />}>{t("estimated", { n: total.estimated_calls })}</Note>
      )}
      {whose === "me" && <Limits money={money} tokens={formatTokens} />}
      {total.calls > 0 && (
        <Group
          title={t("details")}
          action={
            <Button variant="outline" size="sm" disabled={!table.data} onClick={save}>
              <Download aria-hidden />
              {t("csv")}
            </Button>
          }
        >
          <SegmentedControl
            label={t("byLabel")}
            size="sm"
            className="self-start"
            value={by}
            onValueChange={setBy}
            options={(
              ["day", "model", "agent", ...(whose === "everyone" ? (["person"] as const) : [])] as By[]
            ).map((one) => ({ value: one, label: t(`by.${one}`) }))}
          />
          {table.data ? (
            <FiguresTable report={table.data} nameOf={nameOf} cost={cost} />
          ) : (
            <Waiting error={table.error} retry={table.refetch} />
          )}
          <p className="text-xs text-muted-foreground">{t("utc")}</p>
        </Group>
      )}
    </>
  );
}

const useReport = (by: By, days: Range, whose: Whose) =>
  useQuery({ queryKey: keys.usageReport(by, days, whose), queryFn: () => usage(by, days, whose) });

function Sum({ name, value }: { name: string; value: string }) {
  return (
    <div className="bg-card px-4 py-3">
      <dt className="text-xs text-muted-foreground">{name}</dt>
      <dd className="mt-0.5 text-lg font-semibold break-words tabular-nums">{value}</dd>
    </div>
  );
}
