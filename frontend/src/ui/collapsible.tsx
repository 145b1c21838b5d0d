import { Collapsible as Primitive } from "radix-ui";
import type { ComponentProps } from "react";
import { cn } from "@/lib/cn";

export const Collapsible = Primitive.Root;
export const CollapsibleTrigger = Primitive.Trigger;

/** Opens and closes by its height. */
export function CollapsibleContent({ className, ...rest }: ComponentProps<typeof Primitive.Content>) {
  return (
    <Primitive.Content
      className={cn(
        "overflow-hidden data-[state=closed]:animate-collapse data-[state=open]:animate-expand motion-reduce:animate-none",
        className,
      )}
      {...rest}
    />
  );
}
