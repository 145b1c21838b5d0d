"use client";
import { useEffect, useRef, useState } from "react";
import { useT } from "@/i18n";
import { Button } from "@/ui/button";
import { Checkbox } from "@/ui/checkbox";
import { Input } from "@/ui/input";
import { Label } from "@/ui/label";
import { SegmentedControl } from "@/ui/segmented";
import { Textarea } from "@/ui/textarea";
import { fieldsOf, parseArgs, parseField, type Field, type Problem } from "./decisions";

interface ArgumentsEditorProps {
  id: string;
  args: Record<string, unknown>;
  disabled: boolean;
  onDone: (args: Record<string, unknown>) => void;
  onCancel: () => void;
}

const shown = (value: unknown) => (typeof value === "string" ? value : JSON.stringify(value, null, 2));

/** Arguments of a call as a form, or as JSON, which can also add an argument. */
export function ArgumentsEditor({ id, args, disabled, onDone, onCancel }: ArgumentsEditorProps) {
  const t = useT("decisions");
  const common = useT("common");
  const fields = fieldsOf(args);
  const [view, setView] = useState<"form" | "json">(fields.length ? "form" : "json");
  const [texts, setTexts] = useState(() =>
    Object.fromEntries(Object.entries(args).map(([k, v]) => [k, shown(v)])),
  );
  const [flags, setFlags] = useState(args);
  const [json, setJson] = useState(() => JSON.stringify(args, null, 2));
  const [problem, setProblem] = useState<Problem | null>(null);
  const form = useRef<HTMLDivElement>(null);
  useEffect(() => form.current?.querySelector<HTMLElement>("textarea, input[id]")?.focus(), []);

  const fromForm = (): { args: Record<string, unknown> } | { problem: Problem } => {
    const result: Record<string, unknown> = {};
    for (const field of fields) {
      const read =
        field.kind === "flag" ? { value: flags[field.name] } : parseField(field, texts[field.name] ?? "");
      if ("problem" in read) return read;
      result[field.name] = read.value;
    }
    return { args: result };
  };
  const finish = () => {
    const read = view === "form" ? fromForm() : parseArgs(json);
    if ("problem" in read) setProblem(read.problem);
    else onDone(read.args);
  };
  const change = (next: "form" | "json") => {
    if (next === "json") {
      const read = fromForm();
      if ("args" in read) setJson(JSON.stringify(read.args, null, 2));
    } else {
      const read = parseArgs(json);
      if ("args" in read) {
        setTexts(Object.fromEntries(Object.entries(read.args).map(([k, v]) => [k, shown(v)])));
        setFlags(read.args);
      }
    }
    setProblem(null);
    setView(next);
  };

  return (
    <div ref={form} className="flex flex-col gap-3">
      {fields.length > 0 && (
        <SegmentedControl
          label={t("arguments")}
          size="sm"
          className="self-start"
          value={view}
          onValueChange={change}
          options={[
            { value: "form", label: t("form") },
            { value: "json", label: t("json") },
          ]}
        />
      )}
      {view === "form" ? (
        fields.map((field) => (
          <FieldInput
            key={field.name}
            id={`${id}-${field.name}`}
            field={field}
            disabled={disabled}
            text={texts[field.name] ?? ""}
            checked={flags[field.name] === true}
            onText={(text) => setTexts({ ...texts, [field.name]: text })}
            onChecked={(checked) => setFlags({ ...flags, [field.name]: checked })}
          />
        ))
      ) : (
        <Textarea
          aria-label={t("arguments")}
          className="font-mono text-[13px]"
          spellCheck={false}
          value={json}
          disabled={disabled}
          onChange={(event) => setJson(event.target.value)}
        />
      )}
      {problem && (
        <p role="alert" className="text-xs text-destructive">
          {problem.kind === "badJson" && t("badJson", { message: problem.message })}
          {problem.kind === "notObject" && t("notObject")}
          {problem.kind === "notNumber" && t("notNumber", { field: problem.field })}
        </p>
      )}
      <div className="flex flex-wrap gap-2">
        <Button size="sm" disabled={disabled} onClick={finish}>
          {t("runEdited")}
        </Button>
        <Button variant="ghost" size="sm" disabled={disabled} onClick={onCancel}>
          {common("cancel")}
        </Button>
      </div>
    </div>
  );
}

interface FieldInputProps {
  id: string;
  field: Field;
  text: string;
  checked: boolean;
  disabled: boolean;
  onText: (text: string) => void;
  onChecked: (checked: boolean) => void;
}

function FieldInput({ id, field, text, checked, disabled, onText, onChecked }: FieldInputProps) {
  const label = (
    <Label htmlFor={id} className="font-mono text-xs text-muted-foreground">
      {field.name}
    </Label>
  );
  if (field.kind === "flag")
    return (
      <div className="flex items-center gap-2">
        <Checkbox
          id={id}
          checked={checked}
          disabled={disabled}
          onCheckedChange={(value) => onChecked(value === true)}
        />
        {label}
      </div>
    );
  const isCode = field.kind === "json" || field.name === "command" || field.name === "path";
  const rest = {
    id,
    value: text,
    disabled,
    className: isCode ? "font-mono text-[13px]" : "",
    spellCheck: !isCode,
  };
  return (
    <div className="flex flex-col gap-1">
      {label}
      {field.kind === "line" || field.kind === "number" ? (
        <Input
          {...rest}
          inputMode={field.kind === "number" ? "decimal" : undefined}
          onChange={(e) => onText(e.target.value)}
        />
      ) : (
        <Textarea {...rest} onChange={(e) => onText(e.target.value)} />
      )}
    </div>
  );
}
