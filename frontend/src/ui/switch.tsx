import { Switch as Primitive } from "radix-ui";
import type { ComponentProps } from "react";
import { cn } from "@/lib/cn";

export function Switch({ className, ...rest }: ComponentProps<typeof Primitive.Root>) {
  return (
    <Primitive.Root
      className={cn(
        "peer relative inline-flex h-[22px] w-[38px] shrink-0 items-center rounded-full bg-muted-foreground/70 p-[3px] transition-colors duration-150 after:absolute after:-inset-x-1 after:-inset-y-2.5 disabled:cursor-not-allowed disabled:opacity-50 data-[state=checked]:bg-primary",
        className,
      )}
      {...rest}
    >
      <Primitive.Thumb className="pointer-events-none block size-4 rounded-full bg-background transition-transform duration-150 data-[state=checked]:translate-x-4 motion-reduce:transition-none" />
    </Primitive.Root>
  );
}
