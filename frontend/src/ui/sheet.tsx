"use client";
import { X } from "lucide-react";
import { Dialog as Primitive } from "radix-ui";
import type { ComponentProps } from "react";
import { useT } from "@/i18n";
import { cn } from "@/lib/cn";
import { Button } from "./button";
import { FocusedContent } from "./dialog";
import { backdrop } from "./layer";

export const Sheet = Primitive.Root;

const SIDES = {
  left: "inset-y-0 left-0 h-dvh w-[85vw] max-w-xs border-r data-[state=open]:slide-in-from-left data-[state=closed]:slide-out-to-left",
  right:
    "inset-y-0 right-0 h-dvh w-full sm:max-w-lg border-l data-[state=open]:slide-in-from-right data-[state=closed]:slide-out-to-right",
  bottom:
    "inset-x-0 bottom-0 max-h-[92dvh] rounded-t-2xl border-t pb-[env(safe-area-inset-bottom)] data-[state=open]:slide-in-from-bottom data-[state=closed]:slide-out-to-bottom",
};

export interface SheetContentProps extends ComponentProps<typeof Primitive.Content> {
  side?: keyof typeof SIDES;
  /** false: the content has its own way out. */
  closable?: boolean;
}

/** Slides in from an edge. Needs a SheetTitle inside (`sr-only` will do). */
export function SheetContent({
  className,
  children,
  side = "right",
  closable = true,
  ...rest
}: SheetContentProps) {
  const t = useT("common");
  return (
    <Primitive.Portal>
      <Primitive.Overlay className={backdrop} />
      <FocusedContent
        className={cn(
          "fixed z-50 flex flex-col bg-background duration-200 ease-calm outline-none data-[state=closed]:animate-out data-[state=open]:animate-in",
          SIDES[side],
          className,
        )}
        {...rest}
      >
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

export function SheetTitle({ className, ...rest }: ComponentProps<typeof Primitive.Title>) {
  return <Primitive.Title className={cn("text-base leading-6 font-semibold", className)} {...rest} />;
}
