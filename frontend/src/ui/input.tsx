import type { ComponentProps } from "react";
import { cn } from "@/lib/cn";

/** Text is 16 px on touch: smaller, and phones zoom in. */
export const fieldClasses =
  "w-full min-w-0 rounded-lg border border-input bg-background px-3 text-sm transition-[border-color,box-shadow] duration-150 outline-none hover:border-muted-foreground/40 focus-visible:border-ring focus-visible:ring-2 focus-visible:ring-ring/30 disabled:cursor-not-allowed disabled:opacity-50 [&[readonly]]:bg-muted/60 aria-invalid:border-destructive aria-invalid:ring-destructive/25 pointer-coarse:text-base dark:bg-card";

export function Input({ className, type = "text", ...rest }: ComponentProps<"input">) {
  return (
    <input type={type} className={cn(fieldClasses, "h-9 py-1 pointer-coarse:h-11", className)} {...rest} />
  );
}
