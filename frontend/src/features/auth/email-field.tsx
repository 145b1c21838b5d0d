"use client";
import { useId } from "react";
import { useT } from "@/i18n";
import { Input } from "@/ui/input";
import { Label } from "@/ui/label";

interface EmailFieldProps {
  value: string;
  onChange: (value: string) => void;
  autoFocus?: boolean;
  invalid?: boolean;
}

export function EmailField({ value, onChange, autoFocus, invalid }: EmailFieldProps) {
  const t = useT("auth");
  const id = useId();
  return (
    <div className="flex flex-col gap-2">
      <Label htmlFor={id}>{t("email")}</Label>
      <Input
        id={id}
        type="email"
        name="username"
        autoComplete="username"
        inputMode="email"
        autoCapitalize="off"
        spellCheck={false}
        required
        maxLength={320}
        autoFocus={autoFocus}
        placeholder={t("emailPlaceholder")}
        value={value}
        onChange={(event) => onChange(event.target.value)}
        aria-invalid={invalid || undefined}
      />
    </div>
  );
}
