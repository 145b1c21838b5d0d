"use client";
import { Tooltip as Primitive } from "radix-ui";
import { createContext, use, useEffect, useRef, useState, type ComponentProps, type ReactNode } from "react";
import { flushSync } from "react-dom";
import { cn } from "@/lib/cn";
import { shortcutLabel } from "@/lib/shortcuts";
import { Kbd } from "./kbd";
import { landmarkOf } from "./landmark";

const Provided = createContext(false);
/** Milliseconds, and some more. */
const FADES = 150;

/** Once, around the whole page: a second tooltip then comes without delay. */
export function TooltipProvider({ children }: { children: ReactNode }) {
  return (
    <Primitive.Provider delayDuration={350} skipDelayDuration={150} disableHoverableContent>
      <Provided value={true}>{children}</Provided>
    </Primitive.Provider>
  );
}

/** Brings a provider of its own where the page has none. */
function Tooltip(props: ComponentProps<typeof Primitive.Root>) {
  const tooltip = <Primitive.Root {...props} />;
  return use(Provided) ? tooltip : <TooltipProvider>{tooltip}</TooltipProvider>;
}

const TooltipTrigger = Primitive.Trigger;

interface TooltipContentProps extends ComponentProps<typeof Primitive.Content> {
  place: Element | undefined;
}

function TooltipContent({ place, className, ...rest }: TooltipContentProps) {
  return (
    <Primitive.Portal container={place}>
      <Primitive.Content
        sideOffset={6}
        collisionPadding={8}
        className={cn(
          "z-60 flex max-w-72 animate-in items-center gap-2 rounded-md bg-foreground px-2 py-1 text-xs leading-5 text-pretty text-background duration-100 fade-in-0 data-[state=closed]:animate-out data-[state=closed]:fade-out-0",
          className,
        )}
        {...rest}
      />
    </Primitive.Portal>
  );
}

export interface SimpleTooltipProps {
  label: ReactNode;
  /** As in `SHORTCUTS`: "mod+k". */
  shortcut?: string;
  side?: "top" | "right" | "bottom" | "left";
  /** One element that takes a ref; it needs a name of its own, a tooltip is only a description. */
  children: ReactNode;
}

export function SimpleTooltip({ label, shortcut, side, children }: SimpleTooltipProps) {
  const trigger = useRef<HTMLButtonElement>(null);
  const [open, setOpen] = useState(false);
  const [dismissed, setDismissed] = useState(false);
  const [place, setPlace] = useState<Element>();
  const onOpenChange = (next: boolean) => {
    if (next && trigger.current) setPlace(landmarkOf(trigger.current));
    if (next) setDismissed(false);
    setOpen(next);
  };
  useEffect(() => {
    if (!open) return;
    // It is gone before Radix hears of the key, which would keep it from whom it is for: a dialog, a shortcut.
    // Otherwise it fades: what is removed while the focus moves on makes a dialog take the focus.
    const onKey = ({ key }: KeyboardEvent) => {
      if (key !== "Escape") return;
      flushSync(() => {
        setDismissed(true);
        setOpen(false);
      });
    };
    window.addEventListener("keydown", onKey, true);
    return () => void setTimeout(() => window.removeEventListener("keydown", onKey, true), FADES);
  }, [open]);
  return (
    <Tooltip open={open} onOpenChange={onOpenChange}>
      <TooltipTrigger ref={trigger} asChild>
        {children}
      </TooltipTrigger>
      {!dismissed && (
        <TooltipContent place={place} side={side}>
          {label}
          {shortcut && (
            <Kbd className="border-background/25 bg-background/15 text-background">
              {shortcutLabel(shortcut)}
            </Kbd>
          )}
        </TooltipContent>
      )}
    </Tooltip>
  );
}
