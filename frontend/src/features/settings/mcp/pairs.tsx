"use client";
import { Plus, X } from "lucide-react";
import { useT } from "@/i18n";
import { Button } from "@/ui/button";
import { IconButton } from "@/ui/icon-button";
import { Input } from "@/ui/input";
import { Code } from "../parts";
import { newPair, type Pair } from "./draft";
import { MARK } from "./entry";

interface PairsProps {
  label: string;
  pairs: Pair[];
  onChange: (pairs: Pair[]) => void;
}

const FIELD = "font-mono text-[13px]";

/** Names with values, such as variables. A mark is replaced as a whole. */
export function Pairs({ label, pairs, onChange }: PairsProps) {
  const t = useT("mcp");
  const set = (id: number, changes: Partial<Pair>) =>
    onChange(pairs.map((pair) => (pair.id === id ? { ...pair, ...changes } : pair)));
  return (
    <fieldset className="flex min-w-0 flex-col gap-1.5">
      <legend className="mb-1.5 text-sm font-medium">{t("optional", { label })}</legend>
      {pairs.map((pair, index) => (
        <div key={pair.id} className="flex items-center gap-1.5">
          <Input
            aria-label={`${label}: ${t("pairName")} ${index + 1}`}
            placeholder={t("pairName")}
            autoComplete="off"
            autoCapitalize="off"
            spellCheck={false}
            autoFocus={!pair.name && !pair.value}
            className={`${FIELD} min-w-0 flex-2`}
            value={pair.name}
            onChange={(event) => set(pair.id, { name: event.target.value })}
          />
          <Input
            aria-label={`${label}: ${t("pairValue")} ${index + 1}`}
            placeholder={t("pairValue")}
            autoComplete="off"
            autoCapitalize="off"
            spellCheck={false}
            className={`${FIELD} min-w-0 flex-3`}
            value={pair.value}
            onFocus={(event) => pair.value === MARK && event.target.select()}
            onChange={(event) => set(pair.id, { value: event.target.value })}
          />
          <IconButton
            label={t("pairRemove", { name: pair.name || String(index + 1) })}
            onClick={() => onChange(pairs.filter((one) => one.id !== pair.id))}
          >
            <X aria-hidden />
          </IconButton>
        </div>
      ))}
      <Button
        variant="outline"
        size="sm"
        className="self-start"
        onClick={() => onChange([...pairs, newPair()])}
        aria-label={`${label}: ${t("pairAdd")}`}
      >
        <Plus aria-hidden />
        {t("pairAdd")}
      </Button>
      {pairs.length > 0 && (
        <p className="text-xs leading-relaxed text-muted-foreground">
          {t.rich("references", { code: (inner) => <Code>{inner}</Code> })}
        </p>
      )}
    </fieldset>
  );
}
