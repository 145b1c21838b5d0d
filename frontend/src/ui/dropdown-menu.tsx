"use client";
import { Check, ChevronRight, Circle } from "lucide-react";
import { DropdownMenu as Primitive } from "radix-ui";
import { createContext, useContext, useMemo, useState, type ComponentProps } from "react";
import { cn } from "@/lib/cn";
import { landmarkOf } from "./landmark";
import { floating, menuItem } from "./layer";

interface Opening {
  opener?: Element | null;
  place?: Element;
  set: (opener: Element | null) => void;
}

const Opener = createContext<Opening>({ set: () => {} });

/** Does not hide the rest of the page from readers of the screen: what is hidden could still have the focus. */
export function DropdownMenu(props: ComponentProps<typeof Primitive.Root>) {
  const [opener, set] = useState<Element | null>(null);
  const value = useMemo(() => ({ opener, place: opener ? landmarkOf(opener) : undefined, set }), [opener]);
  return (
    <Opener value={value}>
      <Primitive.Root modal={false} {...props} />
    </Opener>
  );
}

export function DropdownMenuTrigger(props: ComponentProps<typeof Primitive.Trigger>) {
  const { set } = useContext(Opener);
  return <Primitive.Trigger ref={set} {...props} />;
}

function Portal(props: ComponentProps<typeof Primitive.Portal>) {
  return <Primitive.Portal container={useContext(Opener).place} {...props} />;
}

export const DropdownMenuRadioGroup = Primitive.RadioGroup;
export const DropdownMenuSub = Primitive.Sub;

const surface = cn(
  floating,
  "max-h-(--radix-dropdown-menu-content-available-height) min-w-44 max-w-[min(24rem,calc(100vw-1rem))] overflow-x-hidden overflow-y-auto p-1",
);

export function DropdownMenuContent({ className, ...rest }: ComponentProps<typeof Primitive.Content>) {
  const { opener } = useContext(Opener);
  return (
    <Portal>
      <Primitive.Content
        sideOffset={6}
        collisionPadding={8}
        className={cn(surface, className)}
        // The opener opens and closes by itself. What still fades out would close what it has just opened.
        onInteractOutside={(event) => {
          if (opener?.contains(event.target as Node)) event.preventDefault();
        }}
        {...rest}
      />
    </Portal>
  );
}

const dangerous =
  "text-destructive data-highlighted:bg-destructive-soft data-highlighted:text-destructive [&_svg]:text-destructive!";

export interface DropdownMenuItemProps extends ComponentProps<typeof Primitive.Item> {
  destructive?: boolean;
}

export function DropdownMenuItem({ className, destructive, ...rest }: DropdownMenuItemProps) {
  return <Primitive.Item className={cn(menuItem, destructive && dangerous, className)} {...rest} />;
}

export function DropdownMenuCheckboxItem({
  className,
  children,
  ...rest
}: ComponentProps<typeof Primitive.CheckboxItem>) {
  return (
    <Primitive.CheckboxItem className={cn(menuItem, "pr-8", className)} {...rest}>
      {children}
      <Primitive.ItemIndicator className="absolute right-2">
        <Check aria-hidden />
      </Primitive.ItemIndicator>
    </Primitive.CheckboxItem>
  );
}

export function DropdownMenuRadioItem({
  className,
  children,
  ...rest
}: ComponentProps<typeof Primitive.RadioItem>) {
  return (
    <Primitive.RadioItem className={cn(menuItem, "pr-8", className)} {...rest}>
      {children}
      <Primitive.ItemIndicator className="absolute right-2">
        <Circle aria-hidden className="size-2 fill-current text-primary" />
      </Primitive.ItemIndicator>
    </Primitive.RadioItem>
  );
}

export function DropdownMenuLabel({ className, ...rest }: ComponentProps<typeof Primitive.Label>) {
  return (
    <Primitive.Label
      className={cn("px-2 py-1.5 text-xs font-medium text-muted-foreground", className)}
      {...rest}
    />
  );
}

export function DropdownMenuSeparator({ className, ...rest }: ComponentProps<typeof Primitive.Separator>) {
  return <Primitive.Separator className={cn("-mx-1 my-1 h-px bg-border", className)} {...rest} />;
}

export function DropdownMenuShortcut({ className, ...rest }: ComponentProps<"span">) {
  return (
    <span className={cn("ml-auto pl-4 text-xs tracking-wide text-muted-foreground", className)} {...rest} />
  );
}

export function DropdownMenuSubTrigger({
  className,
  children,
  ...rest
}: ComponentProps<typeof Primitive.SubTrigger>) {
  return (
    <Primitive.SubTrigger className={cn(menuItem, "data-[state=open]:bg-accent", className)} {...rest}>
      {children}
      <ChevronRight aria-hidden className="ml-auto" />
    </Primitive.SubTrigger>
  );
}

export function DropdownMenuSubContent({ className, ...rest }: ComponentProps<typeof Primitive.SubContent>) {
  return (
    <Portal>
      <Primitive.SubContent
        sideOffset={4}
        collisionPadding={8}
        className={cn(surface, className)}
        {...rest}
      />
    </Portal>
  );
}
