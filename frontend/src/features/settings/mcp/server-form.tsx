"use client";
import { useT } from "@/i18n";
import { Input } from "@/ui/input";
import { Select, SelectContent, SelectItem, SelectTrigger, SelectValue } from "@/ui/select";
import { Switch } from "@/ui/switch";
import { Textarea } from "@/ui/textarea";
import { Field } from "../parts/dialog-form";
import { ACCESS, type Access, type Draft } from "./draft";
import { Pairs } from "./pairs";

interface ServerFormProps {
  draft: Draft;
  /** Names do not change: they are what secrets are kept under. */
  isNew: boolean;
  onChange: (draft: Draft) => void;
}

const TYPES = ["stdio", "http", "sse"] as const;
const PLAIN = { autoComplete: "off", autoCapitalize: "off", spellCheck: false } as const;

export function ServerForm({ draft, isNew, onChange }: ServerFormProps) {
  const t = useT("mcp");
  const set = (changes: Partial<Draft>) => onChange({ ...draft, ...changes });
  return (
    <>
      {isNew && (
        <div className="grid gap-4 sm:grid-cols-2">
          <Field label={t("name")} hint={t("nameHint")}>
            {(given) => (
              <Input
                {...given}
                {...PLAIN}
                autoFocus
                required
                maxLength={64}
                pattern="[^\s\/\\?#%]+"
                value={draft.name}
                onChange={(event) => set({ name: event.target.value })}
              />
            )}
          </Field>
          <TypeField draft={draft} set={set} />
        </div>
      )}
      {!isNew && <TypeField draft={draft} set={set} />}
      {draft.type === "stdio" ? <Program draft={draft} set={set} /> : <Address draft={draft} set={set} />}
      <Field label={t("optional", { label: t("description") })} hint={t("descriptionHint")}>
        {(given) => (
          <Input
            {...given}
            value={draft.description}
            onChange={(event) => set({ description: event.target.value })}
          />
        )}
      </Field>
      <div className="flex items-start gap-3">
        <div className="min-w-0 flex-1">
          <p id="mcp-trusted" className="text-[13px] font-medium">
            {t("trust")}
          </p>
          <p id="mcp-trusted-hint" className="mt-0.5 text-xs leading-relaxed text-muted-foreground">
            {t("trustHint")}
          </p>
        </div>
        <Switch
          checked={draft.trusted}
          onCheckedChange={(trusted) => set({ trusted })}
          aria-labelledby="mcp-trusted"
          aria-describedby="mcp-trusted-hint"
        />
      </div>
    </>
  );
}

interface PartProps {
  draft: Draft;
  set: (changes: Partial<Draft>) => void;
}

function TypeField({ draft, set }: PartProps) {
  const t = useT("mcp");
  return (
    <Field label={t("type")} hint={t(`typeText.${draft.type}`)}>
      {(given) => (
        <Select value={draft.type} onValueChange={(type) => set({ type: type as Draft["type"] })}>
          <SelectTrigger {...given}>
            <SelectValue />
          </SelectTrigger>
          <SelectContent>
            {TYPES.map((one) => (
              <SelectItem key={one} value={one}>
                {t(`kind.${one}`)}
              </SelectItem>
            ))}
          </SelectContent>
        </Select>
      )}
    </Field>
  );
}

function Program({ draft, set }: PartProps) {
  const t = useT("mcp");
  return (
    <>
      <Field label={t("command")}>
        {(given) => (
          <Input
            {...given}
            {...PLAIN}
            required
            placeholder="npx"
            className="font-mono text-[13px]"
            value={draft.command}
            onChange={(event) => set({ command: event.target.value })}
          />
        )}
      </Field>
      <Field label={t("optional", { label: t("args") })} hint={t("argsHint")}>
        {(given) => (
          <Textarea
            {...given}
            {...PLAIN}
            placeholder={"-y\n@modelcontextprotocol/server-memory"}
            className="min-h-20 font-mono text-[13px]"
            value={draft.args}
            onChange={(event) => set({ args: event.target.value })}
          />
        )}
      </Field>
      <Pairs label={t("env")} pairs={draft.env} onChange={(env) => set({ env })} />
    </>
  );
}

function Address({ draft, set }: PartProps) {
  const t = useT("mcp");
  const shown: Access[] = draft.access === "other" ? [...ACCESS, "other"] : [...ACCESS];
  return (
    <>
      <Field label={t("url")}>
        {(given) => (
          <Input
            {...given}
            {...PLAIN}
            type="url"
            required
            placeholder="https://mcp.example.org/mcp"
            value={draft.url}
            onChange={(event) => set({ url: event.target.value })}
          />
        )}
      </Field>
      <Pairs label={t("headers")} pairs={draft.headers} onChange={(headers) => set({ headers })} />
      <Field label={t("access")} hint={draft.access === "own" ? t("ownHint") : undefined}>
        {(given) => (
          <Select value={draft.access} onValueChange={(access) => set({ access: access as Access })}>
            <SelectTrigger {...given}>
              <SelectValue />
            </SelectTrigger>
            <SelectContent>
              {shown.map((one) => (
                <SelectItem key={one} value={one}>
                  {t(`accessOf.${one}`)}
                </SelectItem>
              ))}
            </SelectContent>
          </Select>
        )}
      </Field>
      {(draft.access === "own" || draft.access === "client") && <Client draft={draft} set={set} />}
    </>
  );
}

/** Sign-in data from the provider. */
function Client({ draft, set }: PartProps) {
  const t = useT("mcp");
  const needed = draft.access === "client";
  const field = (key: "tokenUrl" | "clientId" | "clientSecret" | "scope", required: boolean) => (
    <Field label={required ? t(key) : t("optional", { label: t(key) })}>
      {(given) => (
        <Input
          {...given}
          {...PLAIN}
          required={required}
          type={key === "tokenUrl" ? "url" : "text"}
          value={draft[key]}
          onChange={(event) => set({ [key]: event.target.value })}
        />
      )}
    </Field>
  );
  return (
    <>
      {needed && field("tokenUrl", true)}
      <div className="grid gap-4 sm:grid-cols-2">
        {field("clientId", needed)}
        {field("clientSecret", needed)}
      </div>
      {field("scope", false)}
    </>
  );
}
