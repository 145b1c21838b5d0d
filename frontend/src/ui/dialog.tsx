"use client";
import { X } from "lucide-react";
import { Dialog as Primitive } from "radix-ui";
import type { ComponentProps } from "react";
import { useT } from "@/i18n";
import { cn } from "@/lib/cn";
import { Button } from "./button";
import { useFocusBack } from "./focus-back";
import { backdrop } from "./layer";

export { ConfirmDialog } from "./confirm-dialog";

export const Dialog = Primitive.Root;

export interface DialogContentProps extends ComponentProps<typeof Primitive.Content> {
  /** false: no cross in the corner: a question that must be answered, or the content has its own way out. */
  closable?: boolean;
}

/** Mounted when it opens, which is when it notes where the focus was. */
function FocusedContent(props: ComponentProps<typeof Primitive.Content>) {
  return <Primitive.Content onCloseAutoFocus={useFocusBack()} {...props} />;
}

/** A layer over the page, in the middle or at an edge. */
export function FloatingContent({ children, closable = true, ...rest }: DialogContentProps) {
  const t = useT("common");
  return (
    <Primitive.Portal>
      <Primitive.Overlay className={backdrop} />
      <FocusedContent {...rest}>
        {children}
        {closable && (
          <Primitive.Close asChild>
            <Button
              variant="ghost"
              size="icon-sm"
              className="absolute top-3 right-3 text-muted-foreground"
              aria-label={t("close")}
            >
              <X aria-hidden />
            </Button>
          </Primitive.Close>
        )}
      </FocusedContent>
    </Primitive.Portal>
  );
}

/** Needs a DialogTitle inside. On a phone it sits at the lower edge. */
export function DialogContent({ className, ...rest }: DialogContentProps) {
  return (
    <FloatingContent
      className={cn(
        "fixed inset-x-0 bottom-0 z-50 mx-auto flex max-h-[92dvh] w-full flex-col gap-4 overflow-y-auto rounded-t-2xl bg-popover p-5 pb-[max(1.25rem,env(safe-area-inset-bottom))] text-popover-foreground shadow-float duration-200 outline-none data-[state=closed]:animate-out data-[state=closed]:fade-out-0 data-[state=open]:animate-in data-[state=open]:fade-in-0 data-[state=open]:slide-in-from-bottom-2 sm:top-1/2 sm:bottom-auto sm:max-w-md sm:-translate-y-1/2 sm:rounded-2xl sm:p-6",
        className,
      )}
      {...rest}
    />
  );
}

export function DialogHeader({ className, ...rest }: ComponentProps<"div">) {
  return <div className={cn("flex flex-col gap-1.5 pr-8", className)} {...rest} />;
}

export function DialogTitle({ className, ...rest }: ComponentProps<typeof Primitive.Title>) {
  return (
    <Primitive.Title
      className={cn("font-display text-lg leading-6 font-semibold text-balance", className)}
      {...rest}
    />
  );
}

export function DialogDescription({ className, ...rest }: ComponentProps<typeof Primitive.Description>) {
  return (
    <Primitive.Description
      className={cn("text-sm leading-relaxed text-muted-foreground", className)}
      {...rest}
    />
  );
}

export function DialogFooter({ className, ...rest }: ComponentProps<"div">) {
  return (
    <div className={cn("flex flex-col-reverse gap-2 pt-1 sm:flex-row sm:justify-end", className)} {...rest} />
  );
}

/** For `onOpenAutoFocus`: not its first button, which would show its tooltip at once, and that would take the first Escape. */
export function focusItself(event: Event) {
  event.preventDefault();
  (event.currentTarget as HTMLElement).focus();
}
