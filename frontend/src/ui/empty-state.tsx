import type { ReactNode } from "react";
import { cn } from "@/lib/cn";

export interface EmptyStateProps {
  /** An icon of lucide. */
  icon?: ReactNode;
  title: string;
  text?: ReactNode;
  action?: ReactNode;
  className?: string;
}

/** Nothing here yet: says so, and what to do. */
export function EmptyState({ icon, title, text, action, className }: EmptyStateProps) {
  return (
    <div
      className={cn("flex flex-col items-center justify-center gap-1.5 px-6 py-12 text-center", className)}
    >
      {icon && (
        <div
          aria-hidden
          className="mb-2 flex size-11 items-center justify-center rounded-2xl bg-muted text-muted-foreground [&_svg]:size-5"
        >
          {icon}
        </div>
      )}
      <p className="text-sm font-medium text-balance">{title}</p>
      {text && (
        <div className="max-w-sm text-sm leading-relaxed text-pretty text-muted-foreground">{text}</div>
      )}
      {action && <div className="mt-3 flex flex-wrap justify-center gap-2">{action}</div>}
    </div>
  );
}
