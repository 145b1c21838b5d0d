"use client";
import { useT } from "@/i18n";
import { titleOf, useAgents } from "@/lib/agents";
import { useModels } from "@/lib/models";
import { Select, SelectContent, SelectItem, SelectTrigger, SelectValue } from "@/ui/select";
import { Field } from "../parts/dialog-form";

/** No choice: the default. */
export const DEFAULT = "-";

interface AnswersAsProps {
  agent: string;
  setAgent: (name: string) => void;
  model: string;
  setModel: (name: string) => void;
}

/** Agent and model of this channel. */
export function AnswersAs({ agent, setAgent, model, setModel }: AnswersAsProps) {
  const t = useT("channels");
  const agents = useAgents().data ?? [];
  const models = useModels().data?.models ?? [];
  return (
    <div className="grid gap-4 sm:grid-cols-2">
      <Choice
        label={t("agent")}
        none={t("agentNone")}
        value={agent}
        onChange={setAgent}
        options={agents.map((one) => ({ value: one.name, label: titleOf(one) }))}
      />
      <Choice
        label={t("model")}
        none={t("modelNone")}
        value={model}
        onChange={setModel}
        options={models.map((one) => ({ value: one.name, label: one.display_name || one.name }))}
      />
    </div>
  );
}

interface ChoiceProps {
  label: string;
  none: string;
  value: string;
  onChange: (value: string) => void;
  options: { value: string; label: string }[];
}

function Choice({ label, none, value, onChange, options }: ChoiceProps) {
  return (
    <Field label={label}>
      {(given) => (
        <Select value={value} onValueChange={onChange}>
          <SelectTrigger {...given}>
            <SelectValue />
          </SelectTrigger>
          <SelectContent>
            <SelectItem value={DEFAULT}>{none}</SelectItem>
            {options.map((one) => (
              <SelectItem key={one.value} value={one.value}>
                {one.label}
              </SelectItem>
            ))}
          </SelectContent>
        </Select>
      )}
    </Field>
  );
}
