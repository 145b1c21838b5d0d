import { cva, type VariantProps } from "class-variance-authority";
import { Slot } from "radix-ui";
import type { ComponentProps } from "react";
import { cn } from "@/lib/cn";
import { Spinner } from "./spinner";

const buttonVariants = cva(
  "inline-flex shrink-0 items-center justify-center gap-2 rounded-lg text-sm font-medium whitespace-nowrap transition-colors duration-150 select-none disabled:pointer-events-none disabled:opacity-50 aria-disabled:pointer-events-none aria-disabled:opacity-50 motion-reduce:transition-none [&_svg]:pointer-events-none [&_svg]:shrink-0 [&_svg:not([class*='size-'])]:size-4",
  {
    variants: {
      variant: {
        default: "bg-primary text-primary-foreground hover:bg-primary/88 active:bg-primary/80",
        secondary: "bg-secondary text-secondary-foreground hover:bg-accent active:bg-accent/70",
        outline: "border bg-background hover:bg-accent hover:text-accent-foreground active:bg-accent/70",
        ghost: "hover:bg-accent hover:text-accent-foreground active:bg-accent/70",
        soft: "bg-primary-soft text-primary hover:bg-primary-soft/70",
        destructive: "bg-destructive text-destructive-foreground hover:bg-destructive/88",
        link: "text-primary underline-offset-4 hover:underline",
      },
      size: {
        default: "h-9 px-3.5 pointer-coarse:h-10",
        sm: "h-8 gap-1.5 rounded-md px-2.5 text-[13px] pointer-coarse:h-10",
        xs: "h-7 gap-1 rounded-md px-2 text-xs pointer-coarse:h-10 pointer-coarse:px-3 [&_svg:not([class*='size-'])]:size-3.5",
        lg: "h-11 px-5",
        icon: "size-9 pointer-coarse:size-10",
        "icon-sm": "size-8 rounded-md pointer-coarse:size-10",
        "icon-xs": "size-7 rounded-md pointer-coarse:size-10 [&_svg:not([class*='size-'])]:size-3.5",
      },
    },
    defaultVariants: { variant: "default", size: "default" },
  },
);

export interface ButtonProps extends ComponentProps<"button">, VariantProps<typeof buttonVariants> {
  /** Give the look to the one child (a link). */
  asChild?: boolean;
  /** Shows that it works, and takes no further press. */
  pending?: boolean;
}

export function Button({
  className,
  variant,
  size,
  asChild,
  pending,
  children,
  onClick,
  ...rest
}: ButtonProps) {
  const classes = cn(buttonVariants({ variant, size }), className);
  if (asChild)
    return (
      <Slot.Root className={classes} onClick={onClick} {...rest}>
        {children}
      </Slot.Root>
    );
  return (
    <button
      type="button"
      className={classes}
      // Not `disabled`: what works keeps the focus.
      aria-disabled={pending || undefined}
      aria-busy={pending || undefined}
      onClick={pending ? (event) => event.preventDefault() : onClick}
      {...rest}
    >
      {pending && <Spinner />}
      {children}
    </button>
  );
}
