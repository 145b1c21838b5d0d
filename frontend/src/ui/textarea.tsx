import type { ComponentProps } from "react";
import { cn } from "@/lib/cn";
import { fieldClasses } from "./input";

/** Grows with its text. */
export function Textarea({ className, ...rest }: ComponentProps<"textarea">) {
  return (
    <textarea
      className={cn(
        fieldClasses,
        "field-sizing-content max-h-96 min-h-18 resize-none py-2 leading-relaxed",
        className,
      )}
      {...rest}
    />
  );
}
