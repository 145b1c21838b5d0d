"use client";
import { useT } from "@/i18n";
import { Input } from "@/ui/input";
import { Row } from "../parts";
import type { Agent } from "./api";
import { OneOf } from "./choices";

type Limit = NonNullable<Agent["budget"]>;

interface BudgetProps {
  value: Limit | null;
  onChange: (budget: Limit | null) => void;
}

/** Daily budget of an agent; empty means no limit of its own. */
export function Budget({ value, onChange }: BudgetProps) {
  const t = useT("agents.form");
  const set = (some: Partial<Limit>) => {
    const { tokens = null, money = null, at_limit = "ask" } = { ...value, ...some };
    onChange(tokens === null && money === null ? null : { tokens, money, at_limit });
  };
  const number = (text: string) => (text === "" ? null : Number(text));
  return (
    <>
      <Row label={t("tokens")} hint={t("budgetHint")}>
        <Input
          type="number"
          inputMode="numeric"
          min={1}
          step={1}
          aria-label={t("tokens")}
          placeholder={t("noLimit")}
          value={value?.tokens ?? ""}
          onChange={(event) => set({ tokens: number(event.target.value) })}
          className="sm:w-56"
        />
      </Row>
      <Row label={t("money")}>
        <Input
          type="number"
          inputMode="decimal"
          min={0}
          step="any"
          aria-label={t("money")}
          placeholder={t("noLimit")}
          value={value?.money ?? ""}
          onChange={(event) => set({ money: number(event.target.value) })}
          className="sm:w-56"
        />
      </Row>
      {value && (
        <OneOf
          label={t("atLimit")}
          value={value.at_limit === "stop" ? "stop" : null}
          options={[["stop", t("stop")]]}
          unset={t("ask")}
          onChange={(next) => set({ at_limit: next === "stop" ? "stop" : "ask" })}
        />
      )}
    </>
  );
}
