"use client";
import {
  Info,
  Lightbulb,
  MessageSquareWarning,
  OctagonAlert,
  TriangleAlert,
  type LucideIcon,
} from "lucide-react";
import type { ComponentProps } from "react";
import { useT } from "@/i18n";
import { CALLOUTS, type CalloutKind } from "./callouts";

const ICONS: Record<CalloutKind, LucideIcon> = {
  note: Info,
  tip: Lightbulb,
  important: MessageSquareWarning,
  warning: TriangleAlert,
  caution: OctagonAlert,
};

/** A quotation, or what is to be noticed: with a title then, in the reader's language. */
export function Quote({ children, ...rest }: ComponentProps<"blockquote"> & { "data-callout"?: string }) {
  const t = useT("markdown.callout");
  const kind = CALLOUTS.find((one) => one === rest["data-callout"]);
  const { dir } = rest;
  if (!kind) return <blockquote dir={dir}>{children}</blockquote>;
  const Icon = ICONS[kind];
  return (
    <blockquote dir={dir} data-callout={kind}>
      <p data-title>
        <Icon aria-hidden />
        {t(kind)}
      </p>
      {children}
    </blockquote>
  );
}
