"use client";
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useState, type FormEvent } from "react";
import { FormError, useSubmission } from "@/features/auth";
import { useT } from "@/i18n";
import { Badge } from "@/ui/badge";
import { Button } from "@/ui/button";
import { Input } from "@/ui/input";
import { toast } from "@/ui/toast";
import { Panel, Waiting } from "../parts";
import { confirmSecrets, secrets, setSecret, skillKeys, type SkillText } from "./api";

/** Keys that the scripts of a skill need; stored values are never shown again. */
export function Secrets({ skill }: { skill: SkillText }) {
  const { name } = skill;
  const t = useT("skills.secrets");
  const { data, error, refetch } = useQuery({
    queryKey: skillKeys.secrets(name),
    queryFn: () => secrets(name),
  });
  if (!data) return <Waiting error={error} retry={() => void refetch()} rows={1} />;
  return (
    <div className="flex flex-col gap-2.5">
      <p className="text-[13px] leading-relaxed text-muted-foreground">{t("text")}</p>
      {skill.unconfirmed_secrets.length > 0 && <Confirmation skill={skill} />}
      <Panel>
        {Object.entries(data).map(([secret, isSet]) => (
          <SecretRow key={secret} skill={name} secret={secret} isSet={isSet} />
        ))}
      </Panel>
    </div>
  );
}

/** A skill that has changed does not get the keys that were set for it before. */
function Confirmation({ skill }: { skill: SkillText }) {
  const t = useT("skills.secrets");
  const queries = useQueryClient();
  const form = useSubmission();
  const confirm = () =>
    form.submit(async () => {
      queries.setQueryData(skillKeys.secrets(skill.name), await confirmSecrets(skill.name, skill.digest));
      await queries.invalidateQueries({ queryKey: skillKeys.one(skill.name), exact: true });
    });
  return (
    <div
      role="status"
      className="flex flex-col gap-2.5 rounded-lg border border-warning/40 px-4 py-3.5 sm:px-5"
    >
      <p className="text-[13px] leading-relaxed">
        {t("changed", { names: skill.unconfirmed_secrets.join(", ") })}
      </p>
      <Button
        variant="outline"
        className="self-start pointer-coarse:h-11"
        pending={form.pending}
        onClick={() => void confirm()}
      >
        {t("confirm")}
      </Button>
      <FormError message={form.message} />
    </div>
  );
}

function SecretRow({ skill, secret, isSet }: { skill: string; secret: string; isSet: boolean }) {
  const t = useT("skills.secrets");
  const queries = useQueryClient();
  const form = useSubmission();
  const [value, setValue] = useState("");
  const keep = (given: string | null) =>
    form.submit(async () => {
      queries.setQueryData(skillKeys.secrets(skill), await setSecret(skill, secret, given));
      setValue("");
      toast.success(t(given === null ? "forgotten" : "kept", { name: secret }));
    });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    void keep(value);
  };
  return (
    <form onSubmit={submit} className="flex flex-col gap-2.5 px-4 py-3.5 sm:px-5">
      <div className="flex flex-wrap items-center gap-2">
        <span className="font-mono text-[13px] font-medium break-all">{secret}</span>
        <Badge variant={isSet ? "success" : "warning"}>{t(isSet ? "set" : "missing")}</Badge>
      </div>
      <div className="flex flex-wrap gap-2">
        <Input
          type="password"
          aria-label={secret}
          autoComplete="off"
          placeholder={t(isSet ? "replace" : "value")}
          value={value}
          onChange={(event) => setValue(event.target.value)}
          className="flex-1 basis-48"
        />
        <Button
          type="submit"
          variant="outline"
          className="pointer-coarse:h-11"
          pending={form.pending}
          disabled={!value}
        >
          {t("keep")}
        </Button>
        {isSet && (
          <Button variant="ghost" className="pointer-coarse:h-11" onClick={() => void keep(null)}>
            {t("forget")}
          </Button>
        )}
      </div>
      <FormError message={form.message} />
    </form>
  );
}
