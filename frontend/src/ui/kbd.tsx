import type { ComponentProps } from "react";
import { cn } from "@/lib/cn";

export function Kbd({ className, ...rest }: ComponentProps<"kbd">) {
  return (
    <kbd
      className={cn(
        "inline-flex h-5 min-w-5 items-center justify-center rounded-[5px] border bg-muted px-1 font-sans text-[11px] leading-none tracking-wide whitespace-nowrap text-muted-foreground",
        className,
      )}
      {...rest}
    />
  );
}
