"use client";
import { useState } from "react";
import { useT } from "@/i18n";
import { Checkbox } from "@/ui/checkbox";
import { Label } from "@/ui/label";
import { SearchField } from "../parts";

/** From this many models on they can be searched. */
const MANY = 10;
/** Largest number of models of one provider. */
const MOST = 20;

interface ModelChoiceProps {
  models: string[];
  chosen: string[];
  onChange: (chosen: string[]) => void;
}

/** Choice among the offered models; the one that was chosen first is the default. */
export function ModelChoice({ models, chosen, onChange }: ModelChoiceProps) {
  const t = useT("models.connect");
  const [search, setSearch] = useState("");
  const shown = models.filter((name) => name.toLowerCase().includes(search.trim().toLowerCase()));
  return (
    <fieldset className="flex min-w-0 flex-col gap-2">
      <legend className="mb-2 text-sm font-medium">{t("models")}</legend>
      {models.length > MANY && <SearchField label={t("search")} value={search} onChange={setSearch} />}
      <div
        className="max-h-64 divide-y overflow-y-auto rounded-lg border"
        tabIndex={0}
        role="group"
        aria-label={t("models")}
      >
        {shown.map((name) => (
          <Label
            key={name}
            className="flex min-h-10 cursor-pointer items-center gap-3 px-3 py-2 font-normal hover:bg-accent"
          >
            <Checkbox
              checked={chosen.includes(name)}
              disabled={!chosen.includes(name) && chosen.length >= MOST}
              onCheckedChange={(on) =>
                onChange(on ? [...chosen, name] : chosen.filter((other) => other !== name))
              }
            />
            <span className="min-w-0 flex-1 font-mono text-xs break-all">{name}</span>
            {chosen.length > 1 && chosen[0] === name && (
              <span className="text-xs text-muted-foreground">{t("first")}</span>
            )}
          </Label>
        ))}
        {shown.length === 0 && <p className="px-3 py-4 text-sm text-muted-foreground">{t("nothing")}</p>}
      </div>
    </fieldset>
  );
}
