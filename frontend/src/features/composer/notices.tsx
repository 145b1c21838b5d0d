"use client";
import { ShieldQuestion, TriangleAlert } from "lucide-react";
import type { ReactNode } from "react";
import { useT } from "@/i18n";
import { shortcutLabel } from "@/lib/shortcuts";
import type { Message } from "./use-message";

/** Of what happens to calls that wait, if the message is sent before they are decided. */
export const DECLINES = "message-declines";

/** Notices that matter before the message is sent. */
export function Notices({ message }: { message: Message }) {
  const t = useT("composer");
  const { running } = message.session;
  const declined = declinedBy(message);
  const { gone, model, query, models } = message.choice;
  return (
    <>
      {declined > 0 && (
        <Notice id={DECLINES} icon={<ShieldQuestion aria-hidden className="text-warning" />}>
          {t(running ? "declinesLater" : "declines", { n: declined })}
        </Notice>
      )}
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

/** Number of calls that wait for a decision, which a new turn discards. */
export const declinedBy = ({ session }: Message) =>
  session.interrupts.reduce((sum, { calls }) => sum + Math.max(1, calls.length), 0);

function Notice({ id, icon, children }: { id?: string; icon: ReactNode; children: ReactNode }) {
  return (
    <div
      role="status"
      id={id}
      className="mx-2 mt-2 flex items-start gap-x-2 rounded-lg bg-muted px-2.5 py-1.5 text-[13px] leading-5 text-muted-foreground [&>svg]:mt-0.5 [&>svg]:size-4 [&>svg]:shrink-0"
    >
      {icon}
      <span className="min-w-0 break-words">{children}</span>
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
