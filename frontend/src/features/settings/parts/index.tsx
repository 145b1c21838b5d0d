import { Search } from "lucide-react";
import type { ComponentProps, ReactNode } from "react";
import { cn } from "@/lib/cn";
import { ErrorState } from "@/ui/error-state";
import { Input } from "@/ui/input";
import { Skeleton } from "@/ui/skeleton";

/** Rows with hairlines between them. */
export function Panel({ className, ...rest }: ComponentProps<"div">) {
  return <div className={cn("divide-y rounded-xl border bg-card", className)} {...rest} />;
}

interface RowProps {
  label: ReactNode;
  hint?: ReactNode;
  children?: ReactNode;
  /** The control is small: it stays at the right on narrow screens, too. */
  inline?: boolean;
}

/** A setting: what it is at the left, its control at the right; below each other where there is no room. */
export function Row({ label, hint, children, inline }: RowProps) {
  return (
    <div
      className={cn(
        "flex gap-x-6 gap-y-2.5 px-4 py-3.5 sm:flex-row sm:items-center sm:justify-between sm:px-5",
        inline ? "items-center justify-between" : "flex-col",
      )}
    >
      <div className="min-w-0">
        <div className="text-sm font-medium">{label}</div>
        {hint && <div className="mt-0.5 text-[13px] leading-relaxed text-muted-foreground">{hint}</div>}
      </div>
      {children && (
        <div className={cn("min-w-0 sm:shrink-0 sm:text-right", inline && "shrink-0")}>{children}</div>
      )}
    </div>
  );
}

/** A group within a section. */
export function Group({
  title,
  action,
  children,
}: {
  title?: string;
  action?: ReactNode;
  children: ReactNode;
}) {
  return (
    <section aria-label={title} className="flex flex-col gap-2.5">
      {(title || action) && (
        <div className="flex min-h-8 items-center justify-between gap-3">
          {title && <h2 className="text-sm font-semibold">{title}</h2>}
          {action}
        </div>
      )}
      {children}
    </section>
  );
}

/** Facts: names and values. */
export function Facts({ items }: { items: { name: string; value: ReactNode }[] }) {
  return (
    <dl className="divide-y rounded-xl border bg-card text-sm">
      {items.map((item) => (
        <div key={item.name} className="flex flex-wrap justify-between gap-x-6 gap-y-0.5 px-4 py-2.5 sm:px-5">
          <dt className="shrink-0 text-muted-foreground">{item.name}</dt>
          <dd className="min-w-0 text-right break-words">{item.value}</dd>
        </div>
      ))}
    </dl>
  );
}

const TONES = {
  info: "bg-primary-soft text-foreground",
  success: "bg-success-soft text-success",
  warning: "bg-warning-soft text-warning",
  destructive: "bg-destructive-soft text-destructive",
};

export function Note({
  tone = "info",
  icon,
  children,
}: {
  tone?: keyof typeof TONES;
  icon?: ReactNode;
  children: ReactNode;
}) {
  return (
    <div
      className={cn(
        "flex items-start gap-2.5 rounded-xl px-4 py-3 text-[13px] leading-relaxed [&_svg]:mt-0.5 [&_svg]:size-4 [&_svg]:shrink-0",
        TONES[tone],
      )}
    >
      {icon}
      <div className="min-w-0 flex-1 break-words">{children}</div>
    </div>
  );
}

export function Code({ children }: { children: ReactNode }) {
  return (
    <code className="rounded bg-muted px-1.5 py-0.5 font-mono text-xs break-words text-foreground">
      {children}
    </code>
  );
}

interface SearchFieldProps {
  label: string;
  value: string;
  onChange: (value: string) => void;
}

/** Narrows down what stands below it. */
export function SearchField({ label, value, onChange }: SearchFieldProps) {
  return (
    <div className="relative min-w-0 flex-1">
      <Search
        aria-hidden
        className="pointer-events-none absolute top-1/2 left-3 size-4 -translate-y-1/2 text-muted-foreground"
      />
      <Input
        type="search"
        aria-label={label}
        placeholder={label}
        value={value}
        onChange={(event) => onChange(event.target.value)}
        className="pl-9"
      />
    </div>
  );
}

/** Placeholder of a list that is loading or failed to load. */
export function Waiting({ error, retry, rows = 3 }: { error: unknown; retry: () => void; rows?: number }) {
  if (error) return <ErrorState compact error={error} retry={retry} />;
  return (
    <Panel aria-busy>
      {Array.from({ length: rows }, (_, row) => (
        <div key={row} className="flex flex-col gap-2 px-5 py-4">
          <Skeleton className="h-4 w-40" />
          <Skeleton className="h-3.5 w-64 max-w-full" />
        </div>
      ))}
    </Panel>
  );
}
