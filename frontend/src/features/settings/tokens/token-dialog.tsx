"use client";
import { useId, useState, type FormEvent } from "react";
import { FormError, useAccount, useSubmission } from "@/features/auth";
import { useT } from "@/i18n";
import { Button } from "@/ui/button";
import { Checkbox } from "@/ui/checkbox";
import { CopyButton } from "@/ui/copy-button";
import {
  Dialog,
  DialogContent,
  DialogDescription,
  DialogFooter,
  DialogHeader,
  DialogTitle,
} from "@/ui/dialog";
import { Input } from "@/ui/input";
import { Label } from "@/ui/label";
import { Select, SelectContent, SelectItem, SelectTrigger, SelectValue } from "@/ui/select";
import { createToken, type Scope } from "./api";

interface TokenDialogProps {
  open: boolean;
  onOpenChange: (open: boolean) => void;
  onCreated: () => void;
}

/** Makes a token, and shows it this once: it does not close by accident then. */
export function TokenDialog({ open, onOpenChange, onCreated }: TokenDialogProps) {
  const [created, setCreated] = useState<string | null>(null);
  const keep = (event: Event) => created && event.preventDefault();
  const change = (next: boolean) => {
    onOpenChange(next);
    if (!next) setCreated(null);
  };
  return (
    <Dialog open={open} onOpenChange={change}>
      <DialogContent
        closable={!created}
        onEscapeKeyDown={keep}
        onInteractOutside={keep}
        className="sm:max-w-lg"
      >
        {created ? (
          <Created token={created} onDone={() => change(false)} />
        ) : (
          <NewToken
            onCreated={(token) => {
              setCreated(token);
              onCreated();
            }}
          />
        )}
      </DialogContent>
    </Dialog>
  );
}

const LIFETIMES = ["30", "90", "365", "never"] as const;

function NewToken({ onCreated }: { onCreated: (token: string) => void }) {
  const t = useT("tokens");
  const isAdmin = useAccount().data?.system_role === "admin";
  const [name, setName] = useState("");
  const [scopes, setScopes] = useState<Scope[]>(["read", "write"]);
  const [lifetime, setLifetime] = useState<(typeof LIFETIMES)[number]>("90");
  const form = useSubmission();
  const id = useId();
  const submit = (event: FormEvent) => {
    event.preventDefault();
    void form.submit(async () => {
      const days = lifetime === "never" ? null : Number(lifetime);
      onCreated((await createToken({ name: name.trim(), scopes, expires_in_days: days })).token);
    });
  };
  const labels = {
    "30": t("days", { n: 30 }),
    "90": t("days", { n: 90 }),
    "365": t("year"),
    never: t("forever"),
  };
  return (
    <form onSubmit={submit} className="flex flex-col gap-5">
      <DialogHeader>
        <DialogTitle>{t("create")}</DialogTitle>
        <DialogDescription>{t("noneText")}</DialogDescription>
      </DialogHeader>
      <div className="flex flex-col gap-2">
        <Label htmlFor={`${id}-name`}>{t("name")}</Label>
        <Input
          id={`${id}-name`}
          required
          autoFocus
          maxLength={128}
          placeholder={t("namePlaceholder")}
          value={name}
          onChange={(event) => setName(event.target.value)}
        />
      </div>
      <fieldset className="flex flex-col gap-2.5">
        <legend className="mb-2.5 text-sm font-medium">{t("scopes")}</legend>
        {(["read", "write", ...(isAdmin ? ["admin" as const] : [])] as const).map((scope) => (
          <div key={scope} className="flex items-start gap-3">
            <Checkbox
              id={`${id}-${scope}`}
              checked={scopes.includes(scope)}
              onCheckedChange={(on) =>
                setScopes(on ? [...scopes, scope] : scopes.filter((other) => other !== scope))
              }
              className="mt-px"
            />
            <Label htmlFor={`${id}-${scope}`} className="flex-col items-start gap-0">
              {t(`scope.${scope}`)}
              <span className="text-[13px] font-normal text-muted-foreground">{t(`scopeText.${scope}`)}</span>
            </Label>
          </div>
        ))}
      </fieldset>
      <div className="flex flex-col gap-2">
        <Label htmlFor={`${id}-lifetime`}>{t("expiry")}</Label>
        <Select value={lifetime} onValueChange={(next) => setLifetime(next as typeof lifetime)}>
          <SelectTrigger id={`${id}-lifetime`} className="sm:w-44">
            <SelectValue />
          </SelectTrigger>
          <SelectContent>
            {LIFETIMES.map((one) => (
              <SelectItem key={one} value={one}>
                {labels[one]}
              </SelectItem>
            ))}
          </SelectContent>
        </Select>
      </div>
      <FormError message={form.message} />
      <DialogFooter>
        <Button
          type="submit"
          pending={form.pending}
          disabled={!name.trim() || scopes.length === 0 || form.blocked}
        >
          {t("create")}
        </Button>
      </DialogFooter>
    </form>
  );
}

function Created({ token, onDone }: { token: string; onDone: () => void }) {
  const t = useT("tokens");
  const call = `curl -H "Authorization: Bearer ${token}" ${window.location.origin}/api/models`;
  return (
    <>
      <DialogHeader>
        <DialogTitle>{t("created")}</DialogTitle>
        <DialogDescription>{t("createdText")}</DialogDescription>
      </DialogHeader>
      <div className="flex items-center gap-2">
        <Input
          readOnly
          aria-label={t("token")}
          value={token}
          onFocus={(event) => event.target.select()}
          className="font-mono text-xs"
        />
        <CopyButton value={token} withText label={t("copyToken")} size="default" />
      </div>
      <div className="flex flex-col gap-1.5">
        <div className="flex items-center justify-between text-xs text-muted-foreground">
          {t("usage")}
          <CopyButton value={call} />
        </div>
        <pre
          tabIndex={0}
          aria-label={t("usage")}
          className="overflow-x-auto rounded-lg border bg-code p-3 font-mono text-xs leading-relaxed text-code-foreground"
        >
          {call}
        </pre>
      </div>
      <DialogFooter>
        <Button onClick={onDone}>{t("copied")}</Button>
      </DialogFooter>
    </>
  );
}
