"use client";
import { useLocale, useT } from "@/i18n";
import type { Figures, Report } from "./report";

interface FiguresTableProps {
  report: Report;
  nameOf: (key: string) => string;
  cost: (figures: Figures) => string;
}

/** Exact whole numbers. Narrow screens leave out columns that the others cover. */
export function FiguresTable({ report, nameOf, cost }: FiguresTableProps) {
  const t = useT("usage");
  const [locale] = useLocale();
  const count = (value: number) => new Intl.NumberFormat(locale).format(value);
  const line = (row: Figures) => (
    <>
      <td className="hidden px-2 py-2 text-right sm:table-cell">{count(row.calls)}</td>
      <td className="px-2 py-2 text-right">{count(row.input_tokens)}</td>
      <td className="hidden px-2 py-2 text-right sm:table-cell">{count(row.cached_tokens)}</td>
      <td className="px-2 py-2 text-right">{count(row.output_tokens)}</td>
      <td className="py-2 pr-4 pl-2 text-right sm:pr-5">{cost(row)}</td>
    </>
  );
  return (
    <div
      tabIndex={0}
      role="region"
      aria-label={t("table", { by: t(`by.${report.by}`) })}
      className="max-h-112 overflow-auto rounded-xl border bg-card"
    >
      <table className="w-full text-[13px] tabular-nums">
        <thead className="sticky top-0 bg-card text-xs text-muted-foreground">
          <tr className="border-b">
            <th scope="col" className="py-2 pr-2 pl-4 text-left font-medium sm:pl-5">
              {t(`column.${report.by}`)}
            </th>
            <th scope="col" className="hidden px-2 py-2 text-right font-medium sm:table-cell">
              {t("column.calls")}
            </th>
            <th scope="col" className="px-2 py-2 text-right font-medium">
              {t("column.input")}
            </th>
            <th scope="col" className="hidden px-2 py-2 text-right font-medium sm:table-cell">
              {t("column.cached")}
            </th>
            <th scope="col" className="px-2 py-2 text-right font-medium">
              {t("column.output")}
            </th>
            <th scope="col" className="py-2 pr-4 pl-2 text-right font-medium sm:pr-5">
              {t("column.cost")}
            </th>
          </tr>
        </thead>
        <tbody className="divide-y">
          {report.rows.map((row) => (
            <tr key={row.key}>
              <th
                scope="row"
                className="py-2 pr-2 pl-4 text-left font-normal [overflow-wrap:anywhere] sm:pl-5"
              >
                {nameOf(row.key)}
              </th>
              {line(row)}
            </tr>
          ))}
        </tbody>
        <tfoot className="border-t font-medium">
          <tr>
            <th scope="row" className="py-2 pr-2 pl-4 text-left font-medium sm:pl-5">
              {t("total")}
            </th>
            {line(report.total)}
          </tr>
        </tfoot>
      </table>
    </div>
  );
}
