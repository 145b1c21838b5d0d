"use client";
import { useLocale } from "@/i18n";
import { formatCost } from "@/lib/format";
import { useModels } from "@/lib/models";

/** Says costs in the currency of the server's prices. */
export function useCost(): (amount: number) => string {
  const [locale] = useLocale();
  const currency = useModels().data?.currency ?? null;
  return (amount) => formatCost(amount, currency, locale);
}
