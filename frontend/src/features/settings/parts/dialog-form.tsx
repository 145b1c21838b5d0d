"use client";
import { useId, type FormEvent, type ReactNode } from "react";
import { FormError, useSubmission } from "@/features/auth";
import { Button } from "@/ui/button";
import { DialogDescription, DialogFooter, DialogHeader, DialogTitle } from "@/ui/dialog";
import { Label } from "@/ui/label";

interface DialogFormProps {
  title: string;
  text?: ReactNode;
  /** Label of its button. */
  confirm: string;
  /** True if the form can be sent. */
  ready: boolean;
  /** Errors that it throws are shown. */
  onSubmit: () => Promise<unknown>;
  children: ReactNode;
}

/** Content of a dialog with a form. */
export function DialogForm({ title, text, confirm, ready, onSubmit, children }: DialogFormProps) {
  const form = useSubmission();
  const submit = (event: FormEvent) => {
    event.preventDefault();
    void form.submit(onSubmit);
  };
  return (
    <form onSubmit={submit} className="flex min-w-0 flex-col gap-4">
      <DialogHeader>
        <DialogTitle>{title}</DialogTitle>
        <DialogDescription className={text ? undefined : "sr-only"}>{text ?? title}</DialogDescription>
      </DialogHeader>
      {children}
      <FormError message={form.message} />
      <DialogFooter>
        <Button type="submit" pending={form.pending} disabled={!ready || form.blocked}>
          {confirm}
        </Button>
      </DialogFooter>
    </form>
  );
}

interface FieldProps {
  label: string;
  hint?: ReactNode;
  className?: string;
  /** The control; it takes the id and, where there is a hint, that of it. */
  children: (given: { id: string; "aria-describedby"?: string }) => ReactNode;
}

/** A control with its name above and what to know about it below. */
export function Field({ label, hint, className, children }: FieldProps) {
  const id = useId();
  return (
    <div className={`flex min-w-0 flex-col gap-1.5 ${className ?? ""}`}>
      <Label htmlFor={id}>{label}</Label>
      {children({ id, ...(hint ? { "aria-describedby": `${id}-hint` } : {}) })}
      {hint && (
        <p id={`${id}-hint`} className="text-xs leading-relaxed text-muted-foreground">
          {hint}
        </p>
      )}
    </div>
  );
}
