"use client";
import { useQuery } from "@tanstack/react-query";
import { useState, type FormEvent } from "react";
import { FormError, useSubmission } from "@/features/auth";
import { useT } from "@/i18n";
import { useModels } from "@/lib/models";
import { EFFORTS } from "@/lib/run-settings";
import { useSkills } from "@/lib/skills";
import { Button } from "@/ui/button";
import { Input } from "@/ui/input";
import { toast } from "@/ui/toast";
import { Field } from "../parts/dialog-form";
import { Group, Panel } from "../parts";
import { agentKeys, change, choices, type Agent, type Changes } from "./api";
import { Budget } from "./budget";
import { OneOf, SomeOf } from "./choices";

/** An agent's choices among the settings of a run; null leaves one to the chat or to the server. */
export function AgentForm({ agent, onSaved }: { agent: Agent; onSaved: () => Promise<unknown> }) {
  const t = useT("agents.form");
  const saved = useT("agents")("saved");
  const common = useT("common");
  const models = useModels().data?.models ?? [];
  const skills = useSkills().data ?? [];
  const { data } = useQuery({ queryKey: agentKeys.choices, queryFn: choices, staleTime: 60_000 });
  const form = useSubmission();
  const [changes, setChanges] = useState<Changes>({});
  const now = { ...agent, ...changes };
  const set = (some: Changes) => setChanges({ ...changes, ...some });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    void form.submit(async () => {
      await change(agent.name, changes);
      await onSaved();
      setChanges({});
      toast.success(saved);
    });
  };
  const named = (names: readonly string[] = []) => names.map((name) => ({ name }));
  return (
    <form onSubmit={submit} className="flex flex-col gap-6">
      <Field label={t("name")} hint={t("nameHint", { id: agent.name })}>
        {(given) => (
          <Input
            {...given}
            maxLength={64}
            placeholder={agent.name}
            value={now.display_name}
            onChange={(event) => set({ display_name: event.target.value })}
          />
        )}
      </Field>
      <Field label={t("description")} hint={t("descriptionHint")}>
        {(given) => (
          <Input
            {...given}
            maxLength={1024}
            value={now.description}
            onChange={(event) => set({ description: event.target.value })}
          />
        )}
      </Field>
      <Group title={t("model")}>
        <Panel>
          <OneOf
            label={t("model")}
            value={now.model ?? null}
            options={models.map((one) => [one.name, one.display_name])}
            unset={t("asChosen")}
            onChange={(model) => set({ model })}
          />
          <OneOf
            label={t("thinking")}
            value={now.thinking_enabled == null ? null : String(now.thinking_enabled)}
            options={[
              ["true", t("yes")],
              ["false", t("no")],
            ]}
            unset={t("asChosen")}
            onChange={(next) => set({ thinking_enabled: next === null ? null : next === "true" })}
          />
          <OneOf
            label={t("effort")}
            value={now.reasoning_effort ?? null}
            options={EFFORTS.map((effort) => [effort, t(`efforts.${effort}`)])}
            unset={t("asChosen")}
            onChange={(reasoning_effort) => set({ reasoning_effort })}
          />
        </Panel>
      </Group>
      <Group title={t("abilities")}>
        <Panel>
          <SomeOf
            label={t("tools")}
            hint={t("toolsHint")}
            value={now.tool_groups ?? null}
            options={named(data?.tool_groups)}
            all={t("all")}
            onChange={(tool_groups) => set({ tool_groups })}
          />
          <SomeOf
            label={t("skills")}
            value={now.skills ?? null}
            options={skills.map(({ name, description }) => ({ name, text: description }))}
            all={t("allOn")}
            onChange={(some) => set({ skills: some })}
          />
          <SomeOf
            label={t("subagents")}
            value={now.subagents ?? null}
            options={named(data?.subagents)}
            all={t("asChosen")}
            onChange={(subagents) => set({ subagents })}
          />
        </Panel>
      </Group>
      <Group title={t("limits")}>
        <Panel>
          <OneOf
            label={t("policy")}
            hint={t("policyHint")}
            value={now.policy === "off" ? null : (now.policy ?? null)}
            options={[
              ["auto", t("policies.auto")],
              ["strict", t("policies.strict")],
            ]}
            unset={t("asServer")}
            onChange={(policy) => set({ policy: policy as Agent["policy"] })}
          />
          <Budget value={now.budget ?? null} onChange={(budget) => set({ budget })} />
        </Panel>
      </Group>
      <FormError message={form.message} />
      <Button
        type="submit"
        size="sm"
        className="self-end"
        pending={form.pending}
        disabled={Object.keys(changes).length === 0}
      >
        {common("save")}
      </Button>
    </form>
  );
}
