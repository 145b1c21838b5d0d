"use client";
import { TriangleAlert } from "lucide-react";
import type { ReactNode } from "react";
import { useT } from "@/i18n";
import { shortcutLabel } from "@/lib/shortcuts";
import type { Message } from "./use-message";

/** What is to be known before the message is sent. */
export function Notices({ message }: { message: Message }) {
  const t = useT("composer");
  const { gone, model, query, models } = message.choice;
  return (
    <>
      {message.agentGone && (
        <Notice icon={<TriangleAlert aria-hidden className="text-warning" />}>
          {t("agentGone", { name: message.agentGone })}
        </Notice>
      )}
      {gone && model && (
        <Notice icon={<TriangleAlert aria-hidden className="text-warning" />}>
          {t("modelGone", { name: gone, now: model.display_name })}
        </Notice>
      )}
      {model?.problem && (
        <Notice icon={<TriangleAlert aria-hidden className="text-warning" />}>
          {model.display_name}: {t("modelMissing", { names: model.missing.join(", ") })}
        </Notice>
      )}
      {query.isSuccess && !models.length && (
        <Notice icon={<TriangleAlert aria-hidden className="text-warning" />}>{t("modelNoneAtAll")}</Notice>
      )}
    </>
  );
}

function Notice({ icon, children }: { icon: ReactNode; children: ReactNode }) {
  return (
    <div
      role="status"
      className="mx-2 mt-2 flex flex-wrap items-center gap-x-2 gap-y-1 rounded-lg bg-muted px-2.5 py-1.5 text-[13px] text-muted-foreground [&>svg]:size-4 [&>svg]:shrink-0"
    >
      {icon}
      {children}
    </div>
  );
}

export function Hint({ running }: { running: boolean }) {
  const t = useT("composer");
  return (
    <p className="h-6 truncate pt-1.5 text-center text-xs text-muted-foreground pointer-coarse:hidden">
      {running
        ? t("hintRunning", { enter: shortcutLabel("enter"), mod: shortcutLabel("mod+enter") })
        : t("hintIdle", { enter: shortcutLabel("enter"), shift: shortcutLabel("shift+enter") })}
    </p>
  );
}
