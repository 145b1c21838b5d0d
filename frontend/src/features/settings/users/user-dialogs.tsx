"use client";
import { useId, useState, type FormEvent } from "react";
import { FormError, useSubmission } from "@/features/auth";
import { useT } from "@/i18n";
import { Button } from "@/ui/button";
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
import { Textarea } from "@/ui/textarea";
import { addUser } from "./api";

/** A random password, to be handed over. */
export interface Secret {
  email: string;
  password: string;
}

interface AddUserDialogProps {
  open: boolean;
  onOpenChange: (open: boolean) => void;
  onAdded: (made: Secret) => void;
}

export function AddUserDialog({ open, onOpenChange, onAdded }: AddUserDialogProps) {
  const done = (made: Secret) => {
    onOpenChange(false);
    onAdded(made);
  };
  return (
    <Dialog open={open} onOpenChange={onOpenChange}>
      <DialogContent>
        <AddUserForm onAdded={done} />
      </DialogContent>
    </Dialog>
  );
}

function AddUserForm({ onAdded }: { onAdded: (made: Secret) => void }) {
  const t = useT("users");
  const auth = useT("auth");
  const [email, setEmail] = useState("");
  const form = useSubmission();
  const id = useId();
  const submit = (event: FormEvent) => {
    event.preventDefault();
    void form.submit(async () => {
      const made = await addUser(email.trim());
      onAdded({ email: made.email, password: made.password ?? "" });
    });
  };
  return (
    <form onSubmit={submit} className="flex flex-col gap-4">
      <DialogHeader>
        <DialogTitle>{t("addTitle")}</DialogTitle>
        <DialogDescription>{t("addText")}</DialogDescription>
      </DialogHeader>
      <div className="flex flex-col gap-2">
        <Label htmlFor={id}>{auth("email")}</Label>
        <Input
          id={id}
          type="email"
          autoComplete="off"
          required
          autoFocus
          maxLength={320}
          placeholder={auth("emailPlaceholder")}
          value={email}
          onChange={(event) => setEmail(event.target.value)}
        />
      </div>
      <FormError message={form.message} />
      <DialogFooter>
        <Button type="submit" pending={form.pending} disabled={!email.trim() || form.blocked}>
          {t("add")}
        </Button>
      </DialogFooter>
    </form>
  );
}

/** Shown once, and not closed by accident. */
export function NewPasswordDialog({ secret, onDone }: { secret: Secret | null; onDone: () => void }) {
  const t = useT("users");
  const keep = (event: Event) => event.preventDefault();
  const message = secret ? t("messageText", { ...secret, address: window.location.origin }) : "";
  return (
    <Dialog open={secret !== null}>
      <DialogContent closable={false} onEscapeKeyDown={keep} onInteractOutside={keep}>
        <DialogHeader>
          <DialogTitle>{t("passwordTitle", { email: secret?.email ?? "" })}</DialogTitle>
          <DialogDescription>{t("passwordText")}</DialogDescription>
        </DialogHeader>
        <Textarea
          readOnly
          rows={7}
          aria-label={t("message")}
          value={message}
          onFocus={(event) => event.target.select()}
          className="font-mono text-[13px]"
        />
        <DialogFooter>
          <CopyButton value={message} withText label={t("copyMessage")} size="default" />
          <Button onClick={onDone}>{t("done")}</Button>
        </DialogFooter>
      </DialogContent>
    </Dialog>
  );
}
