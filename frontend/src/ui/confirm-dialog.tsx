"use client";
import { AlertDialog as Primitive } from "radix-ui";
import { useState, type ComponentProps, type ReactNode } from "react";
import { useT } from "@/i18n";
import { Button } from "./button";
import { useFocusBack } from "./focus-back";
import { backdrop } from "./layer";

export interface ConfirmDialogProps {
  open: boolean;
  onOpenChange: (open: boolean) => void;
  title: string;
  text?: ReactNode;
  /** Label of the button that confirms. */
  confirm: string;
  destructive?: boolean;
  /** While a promise is pending the button shows it; the dialog closes when it has come true, and stays when it failed. */
  onConfirm: () => unknown;
  /** More to see or to fill in, between text and buttons. */
  children?: ReactNode;
  disabled?: boolean;
}

/** Asks before something that cannot be taken back. The focus begins at "Cancel". */
export function ConfirmDialog(props: ConfirmDialogProps) {
  const { open, onOpenChange, title, text, confirm, destructive, onConfirm, children, disabled } = props;
  const t = useT("common");
  const [pending, setPending] = useState(false);
  const run = async () => {
    setPending(true);
    try {
      await onConfirm();
      onOpenChange(false);
    } catch {
      // onConfirm has shown the error itself; the dialog stays for another try
    }
    setPending(false);
  };
  return (
    <Primitive.Root open={open} onOpenChange={(next) => !pending && onOpenChange(next)}>
      <Primitive.Portal>
        <Primitive.Overlay className={backdrop} />
        <Content
          {...(text ? {} : { "aria-describedby": undefined })}
          className="fixed inset-x-0 bottom-0 z-50 mx-auto flex w-full flex-col gap-4 rounded-t-2xl bg-popover p-5 pb-[max(1.25rem,env(safe-area-inset-bottom))] text-popover-foreground shadow-float duration-200 outline-none data-[state=closed]:animate-out data-[state=closed]:fade-out-0 data-[state=open]:animate-in data-[state=open]:fade-in-0 data-[state=open]:slide-in-from-bottom-2 sm:top-1/2 sm:bottom-auto sm:max-w-md sm:-translate-y-1/2 sm:rounded-2xl sm:p-6"
        >
          <div className="flex flex-col gap-1.5">
            <Primitive.Title className="text-base leading-6 font-semibold text-balance break-words">
              {title}
            </Primitive.Title>
            {text && (
              <Primitive.Description className="text-sm leading-relaxed text-muted-foreground">
                {text}
              </Primitive.Description>
            )}
          </div>
          {children}
          <div className="flex flex-col-reverse gap-2 pt-1 sm:flex-row sm:justify-end">
            <Primitive.Cancel asChild>
              <Button variant="outline" disabled={pending}>
                {t("cancel")}
              </Button>
            </Primitive.Cancel>
            <Button
              variant={destructive ? "destructive" : "default"}
              pending={pending}
              disabled={disabled}
              onClick={run}
            >
              {confirm}
            </Button>
          </div>
        </Content>
      </Primitive.Portal>
    </Primitive.Root>
  );
}

function Content(props: ComponentProps<typeof Primitive.Content>) {
  return <Primitive.Content onCloseAutoFocus={useFocusBack()} {...props} />;
}
