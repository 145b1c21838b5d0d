"use client";
import { useId } from "react";
import { useT } from "@/i18n";
import { Checkbox } from "@/ui/checkbox";
import { Label } from "@/ui/label";
import { SegmentedControl } from "@/ui/segmented";
import { Select, SelectContent, SelectItem, SelectTrigger, SelectValue } from "@/ui/select";
import { Row } from "../parts";

const UNSET = "-";

interface OneOfProps {
  label: string;
  hint?: string;
  /** null: left to others. */
  value: string | null;
  /** Values that can be chosen, and their labels. */
  options: readonly (readonly [string, string])[];
  /** Label of an empty choice. */
  unset: string;
  onChange: (value: string | null) => void;
}

/** One choice, or none. What is chosen and there no more stays in the list. */
export function OneOf({ label, hint, value, options, unset, onChange }: OneOfProps) {
  const all =
    value === null || options.some(([one]) => one === value) ? options : [...options, [value, value]];
  return (
    <Row label={label} hint={hint}>
      <Select value={value ?? UNSET} onValueChange={(next) => onChange(next === UNSET ? null : next)}>
        <SelectTrigger aria-label={label} className="sm:w-56">
          <SelectValue />
        </SelectTrigger>
        <SelectContent>
          <SelectItem value={UNSET}>{unset}</SelectItem>
          {all.map(([one, name]) => (
            <SelectItem key={one} value={one!}>
              {name}
            </SelectItem>
          ))}
        </SelectContent>
      </Select>
    </Row>
  );
}

interface SomeOfProps {
  label: string;
  hint?: string;
  /** null: all, or left to others; empty: none. */
  value: readonly string[] | null;
  options: readonly { name: string; text?: string }[];
  /** Label of null. */
  all: string;
  onChange: (value: string[] | null) => void;
}

/** All, or those that are ticked. */
export function SomeOf({ label, hint, value, options, all, onChange }: SomeOfProps) {
  const t = useT("agents.form");
  const id = useId();
  const gone = (value ?? []).filter((name) => !options.some((one) => one.name === name));
  const shown = [...options, ...gone.map((name) => ({ name, text: t("gone") }))];
  const toggle = (name: string, on: boolean) =>
    onChange(on ? [...(value ?? []), name] : (value ?? []).filter((one) => one !== name));
  return (
    <div>
      <Row label={label} hint={hint}>
        <SegmentedControl<"all" | "some">
          label={label}
          size="sm"
          value={value === null ? "all" : "some"}
          onValueChange={(next) => onChange(next === "all" ? null : [])}
          options={[
            { value: "all", label: all },
            { value: "some", label: value?.length ? t("chosen", { n: value.length }) : t("choose") },
          ]}
        />
      </Row>
      {value !== null && (
        <div className="px-4 pb-3 sm:px-5">
          {shown.length > 0 && (
            <ul aria-label={label} className="max-h-72 divide-y overflow-y-auto rounded-lg border">
              {shown.map(({ name, text }) => (
                <li key={name} className="flex items-start gap-3 px-3 py-2.5">
                  <Checkbox
                    id={`${id}-${name}`}
                    checked={value.includes(name)}
                    onCheckedChange={(on) => toggle(name, on === true)}
                    className="mt-px"
                  />
                  <Label htmlFor={`${id}-${name}`} className="block min-w-0 flex-1 font-normal">
                    <span className="break-words">{name}</span>
                    {text && <span className="line-clamp-1 text-xs text-muted-foreground">{text}</span>}
                  </Label>
                </li>
              ))}
            </ul>
          )}
          {value.length === 0 && <p className="pt-1.5 text-xs text-muted-foreground">{t("noneChosen")}</p>}
        </div>
      )}
    </div>
  );
}
