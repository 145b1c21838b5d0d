"use client";
import { useLayoutEffect, type KeyboardEvent } from "react";
import { useT } from "@/i18n";
import { cn } from "@/lib/cn";
import { declinedBy, DECLINES } from "./notices";
import { SLASH_LIST, slashItemId } from "./slash/slash";
import type { Message } from "./use-message";
import type { useSlash } from "./slash/use-slash";

interface MessageFieldProps {
  message: Message;
  slash: ReturnType<typeof useSlash>;
  welcome: boolean;
  onKeyDown: (event: KeyboardEvent<HTMLTextAreaElement>) => void;
}

/** Grows with its text. */
export function MessageField({ message, slash, welcome, onKeyDown }: MessageFieldProps) {
  const t = useT("composer");
  const { field } = message;
  const text = message.text.slice(slash.prefix.length);
  const menu = slash.items[slash.active];
  useLayoutEffect(() => fit(field.current), [field, text]);
  const placeholder = message.session.running
    ? "placeholderRunning"
    : welcome
      ? "placeholder"
      : "placeholderGoOn";
  return (
    <textarea
      ref={field}
      value={text}
      rows={1}
      dir="auto"
      aria-label={t("label")}
      aria-describedby={declinedBy(message) ? DECLINES : undefined}
      aria-autocomplete="list"
      aria-controls={menu && SLASH_LIST}
      aria-activedescendant={menu && slashItemId(menu.id)}
      placeholder={t(placeholder)}
      onChange={(event) => message.change(slash.prefix + event.target.value)}
      onKeyDown={onKeyDown}
      onPaste={message.paste}
      className={cn(
        "block field-sizing-content max-h-[min(40dvh,24rem)] w-full resize-none bg-transparent px-4 pt-3.5 pb-2 text-[15px] leading-6 outline-none pointer-coarse:text-base",
        welcome ? "min-h-20" : "min-h-11",
      )}
    />
  );
}

/** For browsers that cannot do it by style. */
function fit(element: HTMLTextAreaElement | null) {
  if (!element || CSS.supports?.("field-sizing", "content")) return;
  element.style.height = "auto";
  element.style.height = `${element.scrollHeight}px`;
}
