import { ChevronRight } from "lucide-react";
import { cn } from "@/lib/cn";

/** The mark of a line that opens. */
export function OpenMark({ open }: { open: boolean }) {
  return (
    <ChevronRight
      aria-hidden
      className={cn(
        "size-3.5 shrink-0 opacity-60 transition-transform duration-150 motion-reduce:transition-none",
        open && "rotate-90",
      )}
    />
  );
}
