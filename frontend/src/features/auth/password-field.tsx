"use client";
import { Check, Circle, Eye, EyeOff } from "lucide-react";
import { useId, useState } from "react";
import { useT } from "@/i18n";
import { cn } from "@/lib/cn";
import { Button } from "@/ui/button";
import { Input } from "@/ui/input";
import { Label } from "@/ui/label";
import { MINIMUM_LENGTH, passwordRules } from "./password-rules";

interface PasswordFieldProps {
  value: string;
  onChange: (value: string) => void;
  label: string;
  /** A new one: the rules are shown, and password managers offer to make one. */
  isNew?: boolean;
  autoFocus?: boolean;
  invalid?: boolean;
}

export function PasswordField({ value, onChange, label, isNew, autoFocus, invalid }: PasswordFieldProps) {
  const t = useT("auth");
  const [visible, setVisible] = useState(false);
  const id = useId();
  return (
    <div className="flex flex-col gap-2">
      <Label htmlFor={id}>{label}</Label>
      <div className="relative">
        <Input
          id={id}
          type={visible ? "text" : "password"}
          name={isNew ? "new-password" : "password"}
          autoComplete={isNew ? "new-password" : "current-password"}
          autoFocus={autoFocus}
          autoCapitalize="off"
          spellCheck={false}
          required
          maxLength={1024}
          value={value}
          onChange={(event) => onChange(event.target.value)}
          aria-invalid={invalid || undefined}
          aria-describedby={isNew ? `${id}-rules` : undefined}
          className="pr-11"
        />
        <Button
          variant="ghost"
          aria-label={t(visible ? "hidePassword" : "showPassword")}
          title={t(visible ? "hidePassword" : "showPassword")}
          size="icon-xs"
          className="absolute top-1/2 right-1 -translate-y-1/2 text-muted-foreground"
          onClick={() => setVisible(!visible)}
        >
          {visible ? <EyeOff aria-hidden /> : <Eye aria-hidden />}
        </Button>
      </div>
      {isNew && <Rules id={`${id}-rules`} password={value} />}
    </div>
  );
}

function Rules({ id, password }: { id: string; password: string }) {
  const t = useT("auth");
  return (
    <ul id={id} aria-label={t("rules")} className="flex flex-col gap-1 text-xs">
      {passwordRules(password).map((rule) => {
        const kept = password !== "" && rule.kept;
        return (
          <li
            key={rule.id}
            className={cn(
              "flex items-center gap-1.5 transition-colors",
              kept ? "text-success" : "text-muted-foreground",
            )}
          >
            {kept ? (
              <Check aria-hidden className="size-3.5" />
            ) : (
              <Circle aria-hidden className="size-3.5 p-[3px]" />
            )}
            {t(rule.id, { n: MINIMUM_LENGTH })}
            <span className="sr-only">({kept ? t("ruleDone") : t("ruleOpen")})</span>
          </li>
        );
      })}
    </ul>
  );
}
