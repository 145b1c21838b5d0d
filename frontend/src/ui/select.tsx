"use client";
import { Check, ChevronDown } from "lucide-react";
import { Select as Primitive } from "radix-ui";
import type { ComponentProps } from "react";
import { useT } from "@/i18n";
import { cn } from "@/lib/cn";
import { fieldClasses } from "./input";
import { floating, menuItem } from "./layer";

export const Select = Primitive.Root;
export const SelectValue = Primitive.Value;

export function SelectTrigger({ className, children, ...rest }: ComponentProps<typeof Primitive.Trigger>) {
  return (
    <Primitive.Trigger
      className={cn(
        fieldClasses,
        "flex h-9 items-center justify-between gap-2 data-placeholder:text-muted-foreground pointer-coarse:h-11 [&>span]:truncate",
        className,
      )}
      {...rest}
    >
      {children}
      <Primitive.Icon asChild>
        <ChevronDown aria-hidden className="size-4 shrink-0 text-muted-foreground" />
      </Primitive.Icon>
    </Primitive.Trigger>
  );
}

/** While it is open, Radix holds the focus in it and hides the rest of the page: a modal dialog, which is what it says it is. */
export function SelectContent({ className, children, ...rest }: ComponentProps<typeof Primitive.Content>) {
  const t = useT("common");
  return (
    <Primitive.Portal>
      <div role="dialog" aria-modal aria-label={t("choices")} className="fixed inset-0 z-50 empty:hidden">
        <Primitive.Content
          position="popper"
          sideOffset={6}
          collisionPadding={8}
          className={cn(
            floating,
            "max-h-(--radix-select-content-available-height) min-w-(--radix-select-trigger-width) overflow-hidden p-1",
            className,
          )}
          {...rest}
        >
          <Primitive.Viewport>{children}</Primitive.Viewport>
        </Primitive.Content>
      </div>
    </Primitive.Portal>
  );
}

export function SelectItem({ className, children, ...rest }: ComponentProps<typeof Primitive.Item>) {
  return (
    <Primitive.Item className={cn(menuItem, "pr-8", className)} {...rest}>
      <Primitive.ItemText>{children}</Primitive.ItemText>
      <Primitive.ItemIndicator className="absolute right-2">
        <Check aria-hidden className="size-4" />
      </Primitive.ItemIndicator>
    </Primitive.Item>
  );
}
