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
        <div aria-hidden className="relative mb-2 grid place-items-center">
          <Flow />
          <div className="absolute flex size-11 items-center justify-center rounded-2xl bg-primary-soft text-primary [&_svg]:size-5">
            {icon}
          </div>
        </div>
      )}
      <p className="font-display text-base font-semibold text-balance">{title}</p>
      {text && (
        <div className="max-w-sm text-sm leading-relaxed text-pretty text-muted-foreground">{text}</div>
      )}
      {action && <div className="mt-3 flex flex-wrap justify-center gap-2">{action}</div>}
    </div>
  );
}

/** Streams with nodes, that lead to what stands in the middle. */
function Flow() {
  return (
    <svg viewBox="0 0 168 64" fill="none" className="h-16 w-42 text-primary/35">
      <path
        d="M2 12c34 0 30 20 58 20M2 52c34 0 30-20 58-20M166 12c-34 0-30 20-58 20M166 52c-34 0-30-20-58-20"
        stroke="currentColor"
        strokeWidth="1.5"
        strokeLinecap="round"
      />
      <g className="fill-background" stroke="currentColor" strokeWidth="1.5">
        <circle cx="31" cy="21.5" r="3" />
        <circle cx="31" cy="42.5" r="3" />
        <circle cx="137" cy="21.5" r="3" />
        <circle cx="137" cy="42.5" r="3" />
      </g>
    </svg>
  );
}
