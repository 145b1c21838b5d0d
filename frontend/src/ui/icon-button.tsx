"use client";
import { Button, type ButtonProps } from "./button";
import { SimpleTooltip, type SimpleTooltipProps } from "./tooltip";

export interface IconButtonProps extends Omit<ButtonProps, "aria-label"> {
  label: string;
  /** As in `SHORTCUTS`: "mod+k". */
  shortcut?: string;
  side?: SimpleTooltipProps["side"];
}

/** A button with nothing but an icon: its label is read out and shown on hover. Works as the trigger of a menu. */
export function IconButton({
  label,
  shortcut,
  side,
  variant = "ghost",
  size = "icon-sm",
  ...rest
}: IconButtonProps) {
  return (
    <SimpleTooltip label={label} shortcut={shortcut} side={side}>
      <Button aria-label={label} variant={variant} size={size} {...rest} />
    </SimpleTooltip>
  );
}
