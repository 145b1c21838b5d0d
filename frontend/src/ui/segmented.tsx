import { RadioGroup as Primitive } from "radix-ui";
import type { ReactNode } from "react";
import { cn } from "@/lib/cn";

export interface SegmentedOption<T extends string> {
  value: T;
  label: ReactNode;
  icon?: ReactNode;
  /** Accessible name if `label` is hidden (`hideLabels`) or unclear. */
  ariaLabel?: string;
  disabled?: boolean;
}

export interface SegmentedControlProps<T extends string> {
  value: T;
  onValueChange: (value: T) => void;
  options: SegmentedOption<T>[];
  /** Accessible name of the group. */
  label: string;
  size?: "default" | "sm";
  hideLabels?: boolean;
  className?: string;
}

/** One of few, all of them in sight. */
export function SegmentedControl<T extends string>(props: SegmentedControlProps<T>) {
  const { value, onValueChange, options, label, size = "default", hideLabels, className } = props;
  return (
    <Primitive.Root
      value={value}
      onValueChange={(next) => onValueChange(next as T)}
      aria-label={label}
      orientation="horizontal"
      className={cn("inline-flex items-center gap-0.5 rounded-lg bg-muted p-0.5", className)}
    >
      {options.map((one) => (
        <Primitive.Item
          key={one.value}
          value={one.value}
          disabled={one.disabled}
          aria-label={one.ariaLabel ?? (hideLabels && typeof one.label === "string" ? one.label : undefined)}
          className={cn(
            "inline-flex flex-1 items-center justify-center gap-1.5 rounded-md px-2.5 font-medium whitespace-nowrap text-muted-foreground transition-colors hover:text-foreground disabled:opacity-50 data-[state=checked]:bg-background data-[state=checked]:text-foreground data-[state=checked]:shadow-xs dark:data-[state=checked]:bg-accent pointer-coarse:h-10 [&_svg]:size-4 [&_svg]:shrink-0",
            size === "sm" ? "h-6 text-xs [&_svg]:size-3.5" : "h-8 text-[13px]",
          )}
        >
          {one.icon}
          {!hideLabels && one.label}
        </Primitive.Item>
      ))}
    </Primitive.Root>
  );
}
