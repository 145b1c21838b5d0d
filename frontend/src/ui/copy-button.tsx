"use client";
import { Check, Copy } from "lucide-react";
import { useEffect, useState } from "react";
import { useT } from "@/i18n";
import { cn } from "@/lib/cn";
import { Button, type ButtonProps } from "./button";
import { IconButton } from "./icon-button";

export interface CopyButtonProps extends Omit<ButtonProps, "value" | "onClick" | "children"> {
  /** Text to copy; a function is called when the button is pressed. */
  value: string | (() => string | Promise<string>);
  /** The same as HTML, for programs that take it: tables stay tables. */
  html?: () => string | undefined;
  label?: string;
  /** The label stands beside the icon. */
  withText?: boolean;
}

export function CopyButton({ value, html, label, withText, className, ...rest }: CopyButtonProps) {
  const t = useT("common");
  const [copied, setCopied] = useState(false);
  useEffect(() => {
    if (!copied) return;
    const timer = setTimeout(() => setCopied(false), 1600);
    return () => clearTimeout(timer);
  }, [copied]);
  const copy = async () =>
    setCopied(await copyText(typeof value === "function" ? await value() : value, html?.()));
  const name = copied ? t("copied") : (label ?? t("copy"));
  const icon = copied ? <Check aria-hidden className="text-success" /> : <Copy aria-hidden />;
  const announcement = (
    <span aria-live="polite" className="sr-only">
      {copied ? t("copied") : ""}
    </span>
  );
  if (withText)
    return (
      <Button variant="outline" size="sm" className={className} onClick={copy} {...rest}>
        {icon}
        {name}
        {announcement}
      </Button>
    );
  return (
    <IconButton
      label={name}
      size="icon-xs"
      className={cn("text-muted-foreground", className)}
      onClick={copy}
      {...rest}
    >
      {icon}
      {announcement}
    </IconButton>
  );
}

/** Tells whether it worked. Pages without https have no clipboard interface; a field and the old command remain. */
export async function copyText(text: string, html?: string): Promise<boolean> {
  try {
    if (html && typeof ClipboardItem === "function")
      await navigator.clipboard.write([
        new ClipboardItem({
          "text/plain": new Blob([text], { type: "text/plain" }),
          "text/html": new Blob([html], { type: "text/html" }),
        }),
      ]);
    else await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const field = document.createElement("textarea");
    const before = document.activeElement;
    field.value = text;
    field.setAttribute("aria-hidden", "true");
    field.style.cssText = "position:fixed;opacity:0";
    (before?.closest("[role=dialog]") ?? document.body).append(field); // a dialog takes the focus back from outside
    field.select();
    const done = document.execCommand("copy");
    field.remove();
    if (before instanceof HTMLElement) before.focus();
    return done;
  }
}
