"use client";
import { Download, KeyRound, LogOut } from "lucide-react";
import { useState, type FormEvent } from "react";
import { toast } from "@/ui/toast";
import {
  changePassword,
  FormError,
  isAcceptable,
  PasswordField,
  signOut,
  useAccount,
  useSubmission,
} from "@/features/auth";
import { useT } from "@/i18n";
import { downloadEverything } from "@/lib/export";
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
import { DeleteAccountDialog } from "./delete-account";
import { Group, Note, Panel, Row } from "../parts";

export default function AccountSection() {
  const t = useT("account");
  const { data: account, refetch } = useAccount();
  const [changing, setChanging] = useState(false);
  const [deleting, setDeleting] = useState(false);
  if (!account) return null;
  if (account.email === null)
    return (
      <div className="flex flex-col gap-7">
        <Note>
          <p>{t("local")}</p>
          <p className="text-muted-foreground">{t("localHint")}</p>
        </Note>
        <Group title={t("data")}>
          <Panel>
            <ExportRow />
          </Panel>
        </Group>
      </div>
    );
  const leave = (everywhere: boolean) =>
    signOut(everywhere).catch((error: Error) =>
      toast.error(t("signOutFailed"), { description: error.message }),
    );
  return (
    <div className="flex flex-col gap-7">
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
      <Group title={t("data")}>
        <Panel>
          <ExportRow />
          <Row label={t("delete")} hint={t("deleteHint")}>
            <Button
              variant="outline"
              size="sm"
              className="text-destructive"
              onClick={() => setDeleting(true)}
            >
              {t("delete")}
            </Button>
          </Row>
        </Panel>
        <DeleteAccountDialog email={account.email} open={deleting} onOpenChange={setDeleting} />
      </Group>
    </div>
  );
}

function ExportRow() {
  const t = useT("account");
  return (
    <Row label={t("export")} hint={t("exportHint")}>
      <Button variant="outline" size="sm" onClick={downloadEverything}>
        <Download aria-hidden />
        {t("exportButton")}
      </Button>
    </Row>
  );
}

function PasswordForm({ email, onDone }: { email: string; onDone: () => void }) {
  const t = useT("account");
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
      <FormError message={form.message} />
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
