"use client";
import type { LucideIcon } from "lucide-react";
import { useId, type ReactNode } from "react";
import { cn } from "@/lib/cn";
import { OpenMark } from "@/ui/open-mark";

interface StepRowProps {
  icon: LucideIcon;
  title: string;
  /** Smaller text behind the title. */
  detail?: string;
  mono?: boolean;
  meta?: ReactNode;
  working?: boolean;
  /** Error, visible without opening. */
  failure?: ReactNode;
  open: boolean;
  onOpen: (open: boolean) => void;
  children: ReactNode;
}

/** One step of the agent: a line that opens. */
export function StepRow(props: StepRowProps) {
  const { icon: Icon, title, detail, mono, meta, working, failure, open, onOpen, children } = props;
  const id = useId();
  return (
    <div className="group/row min-w-0">
      <button
        type="button"
        aria-expanded={open}
        aria-controls={open ? id : undefined}
        className="-ml-1.5 flex min-h-8 w-[calc(100%+0.75rem)] items-center gap-2.5 rounded-md px-1.5 text-left text-[13px] leading-5 text-muted-foreground transition-colors hover:bg-accent/60 hover:text-foreground pointer-coarse:min-h-10"
        onClick={() => onOpen(!open)}
      >
        <Icon
          aria-hidden
          className={cn("size-4 shrink-0", failure && "text-destructive", working && "text-primary")}
        />
        <span className="flex min-w-0 flex-1 items-baseline gap-2">
          <span
            className={cn(
              "max-w-full shrink-0 truncate",
              detail && "max-w-[70%]",
              working ? "text-shimmer" : "text-foreground/85",
            )}
          >
            {title}
          </span>
          {detail && (
            <span className={cn("min-w-0 truncate text-xs", mono && "font-mono")} title={detail}>
              {detail}
            </span>
          )}
        </span>
        {meta && <span className="shrink-0 text-xs whitespace-nowrap tabular-nums">{meta}</span>}
        <OpenMark open={open} />
      </button>
      {failure && !open && (
        <p className="mb-1 ml-6.5 truncate text-xs leading-5 text-destructive">{failure}</p>
      )}
      {open && (
        <div
          id={id}
          className="mb-2 ml-6.5 animate-in pt-1 duration-150 fade-in-0 motion-reduce:animate-none"
        >
          {failure && <p className="mb-2 text-xs leading-5 break-words text-destructive">{failure}</p>}
          {children}
        </div>
      )}
    </div>
  );
}
