import { Label as Primitive } from "radix-ui";
import type { ComponentProps } from "react";
import { cn } from "@/lib/cn";

export function Label({ className, ...rest }: ComponentProps<typeof Primitive.Root>) {
  return (
    <Primitive.Root
      className={cn(
        "flex items-center gap-2 text-sm leading-5 font-medium select-none peer-disabled:opacity-50 has-disabled:opacity-50",
        className,
      )}
      {...rest}
    />
  );
}
