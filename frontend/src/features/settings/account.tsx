"use client";
import { KeyRound, LogOut } from "lucide-react";
import { useState, type FormEvent } from "react";
import { toast } from "@/ui/toast";
import { FormError, isAcceptable, PasswordField, signOut, useAccount, useSubmission } from "@/features/auth";
import { useT } from "@/i18n";
import { ApiError } from "@/lib/http";
import { Button } from "@/ui/button";
import { Checkbox } from "@/ui/checkbox";
import {
  Dialog,
  DialogContent,
  DialogDescription,
  DialogFooter,
  DialogHeader,
  DialogTitle,
} from "@/ui/dialog";
import { changePassword } from "./api";
import { Group, Note, Panel, Row } from "./parts";

export default function AccountSection() {
  const t = useT("settings.account");
  const { data: account, refetch } = useAccount();
  const [changing, setChanging] = useState(false);
  if (!account) return null;
  if (account.email === null)
    return (
      <Note>
        <p>{t("local")}</p>
        <p className="text-muted-foreground">{t("localHint")}</p>
      </Note>
    );
  const leave = (everywhere: boolean) =>
    signOut(everywhere).catch((error: Error) =>
      toast.error(t("signOutFailed"), { description: error.message }),
    );
  return (
    <Group>
      {account.needs_setup && (
        <Note tone="warning" icon={<KeyRound aria-hidden />}>
          {t("needsSetup")}
        </Note>
      )}
      <Panel>
        <Row label={t("email")}>
          <span className="text-muted-foreground">{account.email}</span>
        </Row>
        <Row label={t("role")}>
          <span className="text-muted-foreground">
            {t(account.system_role === "admin" ? "roleAdmin" : "roleUser")}
          </span>
        </Row>
        <Row label={t("password")} hint={t("passwordHint")}>
          <Button
            variant={account.needs_setup ? "default" : "outline"}
            size="sm"
            onClick={() => setChanging(true)}
          >
            {t("change")}
          </Button>
        </Row>
        <Row label={t("signOut")} hint={t("signOutHint")}>
          <Button variant="outline" size="sm" onClick={() => void leave(false)}>
            <LogOut aria-hidden />
            {t("signOut")}
          </Button>
        </Row>
        <Row label={t("signOutEverywhere")} hint={t("signOutEverywhereHint")}>
          <Button variant="outline" size="sm" onClick={() => void leave(true)}>
            {t("signOutEverywhere")}
          </Button>
        </Row>
      </Panel>
      <Dialog open={changing} onOpenChange={setChanging}>
        <DialogContent>
          <PasswordForm
            email={account.email}
            onDone={() => {
              setChanging(false);
              toast.success(t("changed"));
              void refetch();
            }}
          />
        </DialogContent>
      </Dialog>
    </Group>
  );
}

function PasswordForm({ email, onDone }: { email: string; onDone: () => void }) {
  const t = useT("settings.account");
  const auth = useT("auth");
  const [current, setCurrent] = useState("");
  const [next, setNext] = useState("");
  const [endSessions, setEndSessions] = useState(true);
  const form = useSubmission();
  const isWrong = form.error instanceof ApiError && form.error.code === "invalid_credentials";
  const submit = (event: FormEvent) => {
    event.preventDefault();
    void form.submit(async () => {
      await changePassword(current, next, endSessions);
      onDone();
    });
  };
  return (
    <form onSubmit={submit} className="flex flex-col gap-4">
      <DialogHeader>
        <DialogTitle>{t("change")}</DialogTitle>
        <DialogDescription>{t("changeHint")}</DialogDescription>
      </DialogHeader>
      <input type="hidden" name="username" autoComplete="username" value={email} readOnly />
      <PasswordField value={current} onChange={setCurrent} label={t("current")} autoFocus invalid={isWrong} />
      <PasswordField value={next} onChange={setNext} label={t("new")} isNew />
      <label className="flex items-center gap-2 text-sm">
        <Checkbox checked={endSessions} onCheckedChange={(checked) => setEndSessions(checked === true)} />
        {t("endSessions")}
      </label>
      <FormError message={isWrong ? auth("error.currentPassword") : form.message} />
      <DialogFooter>
        <Button
          type="submit"
          pending={form.pending}
          disabled={form.blocked || !current || !isAcceptable(next)}
        >
          {t("change")}
        </Button>
      </DialogFooter>
    </form>
  );
}
