import { cn } from "@/lib/cn";

/** A name that is cut in the middle of a narrow place, so that its end stays in sight. */
export function FileName({ name, className }: { name: string; className?: string }) {
  const tail = name.length > 24 ? name.slice(-12) : "";
  return (
    <span className={cn("flex min-w-0", className)} title={name}>
      <span className="truncate">{tail ? name.slice(0, -tail.length) : name}</span>
      {tail && <span className="shrink-0 whitespace-pre">{tail}</span>}
    </span>
  );
}
