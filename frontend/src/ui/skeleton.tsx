import type { ComponentProps } from "react";
import { cn } from "@/lib/cn";

/** Stands where something will be; give it the size that it will have. */
export function Skeleton({ className, ...rest }: ComponentProps<"div">) {
  return (
    <div
      aria-hidden
      className={cn("animate-pulse rounded-md bg-muted motion-reduce:animate-none", className)}
      {...rest}
    />
  );
}
