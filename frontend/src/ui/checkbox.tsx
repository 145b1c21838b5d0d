import { Check, Minus } from "lucide-react";
import { Checkbox as Primitive } from "radix-ui";
import type { ComponentProps } from "react";
import { cn } from "@/lib/cn";

/** The square is small; its invisible edge makes it a fair target for fingers. */
export function Checkbox({ className, ...rest }: ComponentProps<typeof Primitive.Root>) {
  return (
    <Primitive.Root
      className={cn(
        "group peer relative size-[18px] shrink-0 rounded-[5px] border border-input bg-background text-primary-foreground transition-colors after:absolute after:-inset-1 hover:border-muted-foreground disabled:cursor-not-allowed disabled:opacity-50 data-[state=checked]:border-primary data-[state=checked]:bg-primary data-[state=indeterminate]:border-primary data-[state=indeterminate]:bg-primary dark:data-[state=unchecked]:bg-card pointer-coarse:after:-inset-3",
        className,
      )}
      {...rest}
    >
      <Primitive.Indicator className="flex items-center justify-center">
        <Check aria-hidden className="size-3.5 stroke-3 group-data-[state=indeterminate]:hidden" />
        <Minus aria-hidden className="hidden size-3.5 stroke-3 group-data-[state=indeterminate]:block" />
      </Primitive.Indicator>
    </Primitive.Root>
  );
}
