"use client";
import { useState, type FormEvent } from "react";
import { FormError, leave, PasswordField, useSubmission } from "@/features/auth";
import { useT } from "@/i18n";
import { ApiError } from "@/lib/http";
import { Button } from "@/ui/button";
import {
  Dialog,
  DialogContent,
  DialogDescription,
  DialogFooter,
  DialogHeader,
  DialogTitle,
} from "@/ui/dialog";
import { deleteAccount } from "./api";

interface DeleteAccountDialogProps {
  email: string;
  open: boolean;
  onOpenChange: (open: boolean) => void;
}

export function DeleteAccountDialog({ email, open, onOpenChange }: DeleteAccountDialogProps) {
  return (
    <Dialog open={open} onOpenChange={onOpenChange}>
      <DialogContent>
        <DeleteAccountForm email={email} />
      </DialogContent>
    </Dialog>
  );
}

function DeleteAccountForm({ email }: { email: string }) {
  const t = useT("account");
  const [password, setPassword] = useState("");
  const form = useSubmission();
  const isWrong = form.error instanceof ApiError && form.error.code === "invalid_credentials";
  const submit = (event: FormEvent) => {
    event.preventDefault();
    void form.submit(async () => {
      await deleteAccount(password);
      leave();
    });
  };
  return (
    <form onSubmit={submit} className="flex flex-col gap-4">
      <DialogHeader>
        <DialogTitle>{t("deleteTitle")}</DialogTitle>
        <DialogDescription>{t("deleteText")}</DialogDescription>
      </DialogHeader>
      <input type="hidden" name="username" autoComplete="username" value={email} readOnly />
      <PasswordField
        value={password}
        onChange={setPassword}
        label={t("current")}
        autoFocus
        invalid={isWrong}
      />
      <FormError message={form.message} />
      <DialogFooter>
        <Button
          type="submit"
          variant="destructive"
          pending={form.pending}
          disabled={form.blocked || !password}
        >
          {t("deleteConfirm")}
        </Button>
      </DialogFooter>
    </form>
  );
}
