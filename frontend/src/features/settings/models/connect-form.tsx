"use client";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState, type FormEvent } from "react";
import { FormError, useSubmission } from "@/features/auth";
import { useT } from "@/i18n";
import { ApiError } from "@/lib/http";
import { keys } from "@/lib/keys";
import { Button } from "@/ui/button";
import { Input } from "@/ui/input";
import { Label } from "@/ui/label";
import { SegmentedControl } from "@/ui/segmented";
import { Select, SelectContent, SelectItem, SelectTrigger, SelectValue } from "@/ui/select";
import { toast } from "@/ui/toast";
import { connect, reachedModels, testConnection, type Connection, type Store } from "./api";
import { Field } from "../parts/dialog-form";
import { TestOutcome } from "./model-card";
import { ModelChoice } from "./model-choice";

/** Providers without a choice of models or a key of ours declare that by `needs` and `place`. */
const fieldsOf = (provider: Connection) => {
  const isModel = provider.kind === "model";
  const isOutside = provider.place === "environment";
  return {
    address: provider.needs === "address",
    key: !isOutside && (provider.needs === "key" || (isModel && provider.needs === "address")),
    models: isModel,
  };
};

interface ConnectFormProps {
  connections: Connection[];
  /** Called once models can be used, with their number. */
  onConnected?: (models: number) => void;
}

/** Connects a provider: its key or address, the models that the key reaches, a test, and where the key is kept. */
export function ConnectForm({ connections, onConnected }: ConnectFormProps) {
  const t = useT("models.connect");
  // Who searches is a choice among all; a model of the environment is there already.
  const free = connections.filter((one) => one.kind === "search" || one.place !== "environment");
  const [id, setId] = useState(
    (free.find((one) => one.kind === "search" && one.in_use) ?? free[0])?.id ?? "",
  );
  const provider = free.find((one) => one.id === id);
  return (
    <div className="flex flex-col gap-4">
      <Field label={t("provider")}>
        {(control) => (
          <Select value={id} onValueChange={setId}>
            <SelectTrigger {...control} className="sm:w-80">
              <SelectValue />
            </SelectTrigger>
            <SelectContent>
              {free.map((one) => (
                <SelectItem key={one.id} value={one.id}>
                  {one.id === "openai_compatible" ? t("other") : one.title}
                </SelectItem>
              ))}
            </SelectContent>
          </Select>
        )}
      </Field>
      {provider && <ProviderForm key={provider.id} provider={provider} onConnected={onConnected} />}
    </div>
  );
}

interface ProviderFormProps extends Pick<ConnectFormProps, "onConnected"> {
  provider: Connection;
}

function ProviderForm({ provider, onConnected }: ProviderFormProps) {
  const t = useT("models.connect");
  const queries = useQueryClient();
  const [key, setKey] = useState("");
  const [address, setAddress] = useState(provider.base_url ?? "");
  /** null: not asked yet; empty: the server lists none, so a name is typed. */
  const [models, setModels] = useState<string[] | null>(null);
  const [chosen, setChosen] = useState<string[]>([]);
  const [store, setStore] = useState<Store>(provider.place === "dotenv" ? "dotenv" : "encrypted");
  const form = useSubmission();
  const trial = {
    ...(key.trim() ? { key: key.trim() } : {}),
    ...(address.trim() ? { base_url: address.trim() } : {}),
    models: chosen.map((name) => name.trim()).filter(Boolean),
  };
  const test = useMutation({ mutationFn: () => testConnection(provider.id, trial) });
  const isKept = provider.place !== null && address.trim() === (provider.base_url ?? "");
  const fields = fieldsOf(provider);
  const savesKey = fields.key && (provider.needs === "key" || !!key.trim() || (provider.has_key && isKept));
  const canAsk = provider.needs === "nothing" || (fields.address ? !!address.trim() : !!key.trim() || isKept);
  const canUse = fields.models ? models !== null && trial.models.length > 0 : canAsk;
  /** Nothing has to be asked first. */
  const isOpen = !fields.models || models !== null;

  /** Whatever was found with another key or address counts no more. */
  const changed = () => {
    setModels(null);
    setChosen([]);
    test.reset();
    form.clear();
  };
  const choose = (next: string[]) => {
    setChosen(next);
    test.reset();
  };
  const ask = async () => {
    try {
      const found = await reachedModels(provider.id, { ...trial, models: [] });
      setModels(found);
      const before = provider.models.filter((name) => found.includes(name));
      choose(provider.place && before.length > 0 ? before : found.slice(0, 1));
    } catch (problem) {
      if (!(problem instanceof ApiError) || problem.code !== "no_list") throw problem;
      setModels([]);
      choose(provider.models.slice(0, 1));
    }
  };
  const use = async () => {
    await connect(provider.id, trial, store);
    if (!fields.models) toast.success(t("searches", { provider: provider.title }));
    setKey("");
    changed();
    await Promise.all(
      [keys.models, keys.connections].map((queryKey) => queries.invalidateQueries({ queryKey })),
    );
    if (fields.models) onConnected?.(trial.models.length);
  };
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (canUse) void form.submit(use);
    else if (canAsk) void form.submit(ask);
  };

  return (
    <form onSubmit={submit} className="flex flex-col gap-4" autoComplete="off">
      {fields.address && (
        <Field label={t("address")} hint={t(fields.models ? "addressHint" : "searchAddressHint")}>
          {(control) => (
            <Input
              {...control}
              inputMode="url"
              autoCapitalize="off"
              spellCheck={false}
              required
              placeholder={
                provider.example ?? (fields.models ? "http://localhost:11434/v1" : "http://localhost:8080")
              }
              value={address}
              onChange={(event) => {
                setAddress(event.target.value);
                changed();
              }}
            />
          )}
        </Field>
      )}
      {fields.key && (
        <Field
          label={fields.address ? t("keyIfAny") : t("key")}
          hint={provider.has_key ? t("keyKept") : undefined}
        >
          {(control) => (
            <Input
              {...control}
              type="password"
              autoComplete="off"
              autoCapitalize="off"
              spellCheck={false}
              placeholder={fields.models && !fields.address ? "sk-…" : undefined}
              value={key}
              onChange={(event) => {
                setKey(event.target.value);
                changed();
              }}
            />
          )}
        </Field>
      )}
      {!fields.key && !fields.address && (
        <p className="text-[13px] leading-relaxed text-muted-foreground">
          {t(provider.needs === "nothing" ? "noKey" : "keyOutside", { variable: provider.variable })}
        </p>
      )}
      {fields.models && models === null && (
        <Button
          type="submit"
          className="self-start"
          pending={form.pending}
          disabled={!canAsk || form.blocked}
        >
          {t("show")}
        </Button>
      )}
      {models !== null && models.length > 0 && (
        <ModelChoice models={models} chosen={chosen} onChange={choose} />
      )}
      {models?.length === 0 && (
        <Field label={t("model")} hint={t("modelHint")}>
          {(control) => (
            <Input
              {...control}
              value={chosen[0] ?? ""}
              onChange={(event) => choose(event.target.value ? [event.target.value] : [])}
            />
          )}
        </Field>
      )}
      {isOpen && (
        <>
          {savesKey && (
            <div className="flex flex-col gap-1.5">
              <Label asChild>
                <span>{t("store")}</span>
              </Label>
              <SegmentedControl
                label={t("store")}
                className="self-start"
                value={store}
                onValueChange={setStore}
                options={[
                  { value: "encrypted", label: t("place.encrypted") },
                  { value: "dotenv", label: t("place.dotenv") },
                ]}
              />
              <p className="text-xs leading-relaxed text-muted-foreground">{t(`storeText.${store}`)}</p>
            </div>
          )}
          <div role="status" className="empty:hidden">
            <TestOutcome test={test} />
          </div>
        </>
      )}
      <FormError message={form.message} />
      {isOpen && (
        <div className="flex flex-wrap gap-2">
          <Button type="submit" pending={form.pending} disabled={!canUse || form.blocked}>
            {t("use")}
          </Button>
          <Button variant="outline" pending={test.isPending} disabled={!canUse} onClick={() => test.mutate()}>
            {t("test")}
          </Button>
        </div>
      )}
    </form>
  );
}
