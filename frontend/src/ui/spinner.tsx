import { LoaderCircle } from "lucide-react";
import { cn } from "@/lib/cn";

/** With a `label` it is announced; without it stands beside a text that says the same. */
export function Spinner({ className, label }: { className?: string; label?: string }) {
  return (
    <span role={label ? "status" : undefined} className="inline-flex shrink-0">
      <LoaderCircle aria-hidden className={cn("size-4 animate-spin", className)} />
      {label && <span className="sr-only">{label}</span>}
    </span>
  );
}
