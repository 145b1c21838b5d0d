"use client";
import { Dialog as Primitive } from "radix-ui";
import type { ComponentProps } from "react";
import { cn } from "@/lib/cn";
import { FloatingContent, type DialogContentProps } from "./dialog";

export const Sheet = Primitive.Root;

const SIDES = {
  left: "inset-y-0 left-0 h-dvh w-[85vw] max-w-xs border-r data-[state=open]:slide-in-from-left data-[state=closed]:slide-out-to-left",
  right:
    "inset-y-0 right-0 h-dvh w-full sm:max-w-lg border-l data-[state=open]:slide-in-from-right data-[state=closed]:slide-out-to-right",
  bottom:
    "inset-x-0 bottom-0 max-h-[92dvh] rounded-t-2xl border-t pb-[env(safe-area-inset-bottom)] data-[state=open]:slide-in-from-bottom data-[state=closed]:slide-out-to-bottom",
};

export interface SheetContentProps extends DialogContentProps {
  side?: keyof typeof SIDES;
}

/** Slides in from an edge. Needs a SheetTitle inside (`sr-only` will do). */
export function SheetContent({ className, side = "right", ...rest }: SheetContentProps) {
  return (
    <FloatingContent
      className={cn(
        "fixed z-50 flex flex-col bg-background duration-200 ease-calm outline-none data-[state=closed]:animate-out data-[state=open]:animate-in",
        SIDES[side],
        className,
      )}
      {...rest}
    />
  );
}

export function SheetTitle({ className, ...rest }: ComponentProps<typeof Primitive.Title>) {
  return <Primitive.Title className={cn("text-base leading-6 font-semibold", className)} {...rest} />;
}
