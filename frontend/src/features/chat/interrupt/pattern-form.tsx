"use client";
import { useId, useState } from "react";
import { useT } from "@/i18n";
import { marked } from "@/lib/marks";
import { Button } from "@/ui/button";
import { Input } from "@/ui/input";
import { SegmentedControl } from "@/ui/segmented";
import { Textarea } from "@/ui/textarea";
import { Marked } from "./long-text";
import { grant, patternOf, type Decision, type Pattern, type WaitingCall } from "./decisions";

interface PatternFormProps {
  call: WaitingCall;
  cosmetic: readonly string[];
  busy: boolean;
  onDone: (decision: Decision) => void;
  onCancel: () => void;
}

/** Form for the pattern of calls that need no decision any more: each argument must match, or may be anything. */
export function PatternForm({ call, cosmetic, busy, onDone, onCancel }: PatternFormProps) {
  const t = useT("decisions");
  const common = useT("common");
  const id = useId();
  const own = patternOf(call, cosmetic);
  const [pattern, setPattern] = useState<Pattern>(own);
  const change = (name: string, glob: string | null) => setPattern({ ...pattern, [name]: glob });
  return (
    <div className="flex flex-col gap-3">
      <p className="text-[13px] text-muted-foreground">{t("patternHint")}</p>
      {Object.entries(pattern).map(([name, glob]) => {
        const Field = own[name]?.includes("\n") ? Textarea : Input;
        return (
          <div key={name} className="flex flex-col gap-1.5">
            <div className="flex flex-wrap items-center justify-between gap-x-3 gap-y-1">
              <label htmlFor={`${id}-${name}`} className="font-mono text-xs text-muted-foreground">
                {name}
              </label>
              <SegmentedControl
                label={name}
                size="sm"
                value={glob === null ? "any" : "same"}
                onValueChange={(next) => change(name, next === "any" ? null : own[name]!)}
                options={[
                  { value: "same", label: t("same") },
                  { value: "any", label: t("any") },
                ]}
              />
            </div>
            {glob !== null && glob !== marked(glob) && (
              <p className="font-mono text-xs [overflow-wrap:anywhere]">
                <Marked text={glob} />
              </p>
            )}
            {glob !== null && (
              <Field
                id={`${id}-${name}`}
                className="font-mono text-[13px]"
                spellCheck={false}
                value={glob}
                disabled={busy}
                onChange={(event) => change(name, event.target.value)}
              />
            )}
          </div>
        );
      })}
      {Object.keys(call.args)
        .filter((name) => !(name in own))
        .map((name) => (
          <p key={name} className="flex items-center justify-between gap-3 text-xs text-muted-foreground">
            <span className="font-mono [overflow-wrap:anywhere]">
              <Marked text={name} />
            </span>
            {t("alwaysAny")}
          </p>
        ))}
      <div className="flex flex-wrap gap-2">
        {call.grants.map((one) => (
          <Button key={one} size="sm" disabled={busy} onClick={() => onDone(grant(one, pattern))}>
            {t(`grant.${one}`)}
          </Button>
        ))}
        <Button variant="ghost" size="sm" disabled={busy} onClick={onCancel}>
          {common("cancel")}
        </Button>
      </div>
    </div>
  );
}
