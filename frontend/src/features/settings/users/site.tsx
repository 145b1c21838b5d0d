"use client";
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useId, useState, type FormEvent } from "react";
import { useT } from "@/i18n";
import { site, type Site } from "@/lib/api";
import { keys } from "@/lib/keys";
import { useModels } from "@/lib/models";
import { MODES } from "@/lib/run-settings";
import { Button } from "@/ui/button";
import { Select, SelectContent, SelectItem, SelectTrigger, SelectValue } from "@/ui/select";
import { Switch } from "@/ui/switch";
import { Textarea } from "@/ui/textarea";
import { toast } from "@/ui/toast";
import { system } from "../about/api";
import { changeSite } from "./api";
import { Group, Panel, Row, Waiting } from "../parts";

const UNSET = "-";
const NOTICE_CHARS = 500;

/** Settings by administrators for everybody. */
export function SiteSettings() {
  const t = useT("users");
  const queries = useQueryClient();
  const { data, error, refetch } = useQuery({ queryKey: keys.site, queryFn: site });
  const change = async (changes: Partial<Site>) => {
    try {
      queries.setQueryData(keys.site, await changeSite(changes));
      toast.success(t("saved"));
    } catch (problem) {
      toast.error((problem as Error).message);
    }
    for (const key of [keys.models, keys.setup, keys.system])
      void queries.invalidateQueries({ queryKey: key });
  };
  return (
    <Group title={t("everyone")}>
      {data ? <Fields data={data} change={change} /> : <Waiting error={error} retry={refetch} />}
    </Group>
  );
}

interface FieldsProps {
  data: Site;
  change: (changes: Partial<Site>) => Promise<void>;
}

function Fields({ data, change }: FieldsProps) {
  const t = useT("users");
  const composer = useT("composer");
  const models = useModels().data?.models ?? [];
  const isOpen = useQuery({ queryKey: keys.system, queryFn: system }).data?.registration;
  const id = useId();
  return (
    <Panel>
      <Row inline label={<label htmlFor={id}>{t("registration")}</label>} hint={t("registrationText")}>
        <Switch
          id={id}
          checked={data.registration ?? isOpen ?? false}
          onCheckedChange={(registration) => void change({ registration })}
        />
      </Row>
      <Row label={t("defaultModel")} hint={t("defaultText")}>
        <Choice
          label={t("defaultModel")}
          value={data.default_model}
          options={models.map((model) => [model.name, model.display_name])}
          onChange={(name) => void change({ default_model: name })}
        />
      </Row>
      <Row label={t("defaultMode")} hint={t("defaultText")}>
        <Choice
          label={t("defaultMode")}
          value={data.default_mode}
          options={MODES.map((mode) => [mode, composer(`modes.${mode}`)])}
          onChange={(mode) => void change({ default_mode: mode as Site["default_mode"] })}
        />
      </Row>
      <NoticeForm key={data.notice} notice={data.notice ?? ""} onSave={(notice) => change({ notice })} />
    </Panel>
  );
}

interface ChoiceProps {
  label: string;
  value: string | null;
  options: [string, string][];
  onChange: (value: string | null) => void;
}

function Choice({ label, value, options, onChange }: ChoiceProps) {
  const t = useT("users");
  return (
    <Select value={value ?? UNSET} onValueChange={(next) => onChange(next === UNSET ? null : next)}>
      <SelectTrigger aria-label={label} className="w-full sm:w-52">
        <SelectValue />
      </SelectTrigger>
      <SelectContent>
        <SelectItem value={UNSET}>{t("unset")}</SelectItem>
        {options.map(([name, text]) => (
          <SelectItem key={name} value={name}>
            {text}
          </SelectItem>
        ))}
      </SelectContent>
    </Select>
  );
}

function NoticeForm({ notice, onSave }: { notice: string; onSave: (notice: string) => Promise<void> }) {
  const t = useT("users");
  const [text, setText] = useState(notice);
  const [pending, setPending] = useState(false);
  const id = useId();
  const submit = async (event: FormEvent) => {
    event.preventDefault();
    setPending(true);
    await onSave(text.trim());
    setPending(false);
  };
  return (
    <form onSubmit={(event) => void submit(event)} className="flex flex-col gap-2.5 px-4 py-3.5 sm:px-5">
      <label htmlFor={id} className="text-sm font-medium">
        {t("notice")}
      </label>
      <p className="-mt-2 text-[13px] leading-relaxed text-muted-foreground">{t("noticeText")}</p>
      <Textarea
        id={id}
        rows={2}
        maxLength={NOTICE_CHARS}
        placeholder={t("noticePlaceholder")}
        value={text}
        onChange={(event) => setText(event.target.value)}
      />
      <Button
        type="submit"
        size="sm"
        className="self-end"
        pending={pending}
        disabled={text.trim() === notice}
      >
        {t("save")}
      </Button>
    </form>
  );
}
