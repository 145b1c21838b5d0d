"use client";
import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { useAccount } from "@/features/auth";
import { useT } from "@/i18n";
import { Button } from "@/ui/button";
import { Dialog, DialogContent } from "@/ui/dialog";
import { Select, SelectContent, SelectItem, SelectTrigger, SelectValue } from "@/ui/select";
import { toast } from "@/ui/toast";
import { DialogForm, Field } from "../parts/dialog-form";
import { AnswersAs, DEFAULT } from "./answers-as";
import * as api from "./api";
import { CredentialField } from "./credential-field";
import { Labelled } from "./labelled";
import { QrSignIn } from "./qr-sign-in";
import { Steps } from "./steps";

interface BotDialogProps {
  /** The one that is changed; null: a new one. */
  bot: api.Bot | null;
  open: boolean;
  providers: api.Provider[];
  onClose: () => void;
}

export function BotDialog({ bot, open, providers, onClose }: BotDialogProps) {
  return (
    <Dialog open={open} onOpenChange={(next) => !next && onClose()}>
      <DialogContent className="sm:max-w-xl">
        {open && <BotEditor bot={bot} providers={providers} onClose={onClose} />}
      </DialogContent>
    </Dialog>
  );
}

function BotEditor({ bot, providers, onClose }: Omit<BotDialogProps, "open">) {
  const t = useT("channels");
  const queries = useQueryClient();
  const isAdmin = useAccount().data?.system_role === "admin";
  const [kind, setKind] = useState(bot?.kind ?? providers[0]?.provider ?? "");
  const [values, setValues] = useState<api.Values>({});
  const [own, setOwn] = useState(!isAdmin);
  const [agent, setAgent] = useState(bot?.agent ?? DEFAULT);
  const [model, setModel] = useState(bot?.model ?? DEFAULT);
  const provider = providers.find((one) => one.provider === kind);
  const [isSigningIn, setSigningIn] = useState(false);
  const byQr = provider?.qr_login ?? false;
  const fields = byQr ? [] : (provider?.credential_fields ?? []);
  const ready = !!provider && fields.every((one) => bot || !one.required || !!values[one.name]?.trim());
  const chosen = {
    agent: agent === DEFAULT ? null : agent,
    model: model === DEFAULT ? null : model,
  };
  const done = async (made: api.Bot) => {
    toast.success(t(bot ? "saved" : "added", { name: made.name || made.title }));
    await queries.invalidateQueries({ queryKey: api.KEYS.all });
    onClose();
  };
  const save = async () => {
    if (byQr && !bot) return setSigningIn(true);
    const draft: api.Draft = { values, ...chosen };
    await done(bot ? await api.changeBot(bot.id, draft) : await api.addBot(kind, own, draft));
  };
  return (
    <DialogForm
      title={bot ? t("editTitle", { name: bot.name || bot.title }) : t("addTitle")}
      text={bot ? undefined : t("addText")}
      confirm={t(bot ? "save" : byQr ? "qr.show" : "addShort")}
      ready={ready && !(isSigningIn && !bot)}
      onSubmit={save}
    >
      {!bot && (
        <Field label={t("platform")}>
          {(given) => (
            <Select
              value={kind}
              onValueChange={(next) => {
                setKind(next);
                setValues({});
                setSigningIn(false);
              }}
            >
              <SelectTrigger {...given} className="sm:w-80">
                <SelectValue />
              </SelectTrigger>
              <SelectContent>
                {providers.map((one) => (
                  <SelectItem key={one.provider} value={one.provider}>
                    {one.display_name}
                  </SelectItem>
                ))}
              </SelectContent>
            </Select>
          )}
        </Field>
      )}
      {!bot && <Steps kind={kind} />}
      {fields.map((field) => (
        <CredentialField
          key={`${kind}-${field.name}`}
          field={field}
          isKept={bot !== null}
          kept={bot?.values[field.name] ?? ""}
          value={values[field.name]}
          onChange={(value) => setValues((all) => ({ ...all, [field.name]: value }))}
        />
      ))}
      {isSigningIn && <QrSignIn kind={kind} draft={{ bot_id: bot?.id, own, ...chosen }} onDone={done} />}
      {byQr && bot && !isSigningIn && (
        <Button type="button" variant="outline" className="self-start" onClick={() => setSigningIn(true)}>
          {t("qr.signInAgain")}
        </Button>
      )}
      <AnswersAs agent={agent} setAgent={setAgent} model={model} setModel={setModel} />
      {!bot && isAdmin && (
        <Labelled id="own" label={t("ownLabel")} hint={t("ownHint")} checked={own} onChange={setOwn} />
      )}
    </DialogForm>
  );
}
