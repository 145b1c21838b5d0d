"use client";
import { useT } from "@/i18n";
import { Input } from "@/ui/input";
import { Field } from "../parts/dialog-form";
import type * as api from "./api";
import { Labelled } from "./labelled";

interface CredentialFieldProps {
  field: api.Field;
  /** There is a bot already, with its secrets. */
  isKept: boolean;
  /** Current value; empty for secrets. */
  kept: string;
  value: string | undefined;
  onChange: (value: string) => void;
}

export function CredentialField({ field, isKept, kept, value, onChange }: CredentialFieldProps) {
  const t = useT("channels");
  if (field.type === "boolean")
    return (
      <Labelled
        id={field.name}
        label={field.label}
        checked={(value ?? kept) === "true"}
        onChange={(on) => onChange(on ? "true" : "false")}
      />
    );
  const isSecret = field.type === "password";
  return (
    <Field
      label={field.required ? field.label : t("optional", { label: field.label })}
      hint={isSecret && isKept ? t("kept") : undefined}
    >
      {(given) => (
        <Input
          {...given}
          type={isSecret ? "password" : "text"}
          autoComplete="off"
          autoCapitalize="off"
          spellCheck={false}
          value={value ?? kept}
          onChange={(event) => onChange(event.target.value)}
        />
      )}
    </Field>
  );
}
