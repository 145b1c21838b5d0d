"use client";
import { ArrowUp, CornerDownRight, ListEnd, Square } from "lucide-react";
import { Suspense } from "react";
import { useT } from "@/i18n";
import { afterPage } from "@/lib/late";
import { Button } from "@/ui/button";
import { IconButton } from "@/ui/icon-button";
import { SimpleTooltip } from "@/ui/tooltip";
import { Spinner } from "@/ui/spinner";
import type { Message } from "./use-message";

const Dictation = afterPage(() => import("./dictation/dictation"));

interface SendButtonsProps {
  message: Message;
  stopping: boolean;
  onStop: () => void;
}

/** Send; while the agent works: stop, and two ways to say more. */
export function SendButtons({ message, stopping, onStop }: SendButtonsProps) {
  const t = useT("composer");
  const { running } = message.session;
  return (
    <div className="ml-auto flex shrink-0 items-center gap-1.5 pl-1">
      <Suspense>
        <Dictation field={message.field} />
      </Suspense>
      {running && !message.empty && (
        <>
          <SimpleTooltip label={t("steerHint")}>
            <Button variant="outline" size="sm" className="max-sm:px-2" onClick={() => message.send("steer")}>
              <CornerDownRight aria-hidden />
              <span className="max-sm:sr-only">{t("steer")}</span>
            </Button>
          </SimpleTooltip>
          <SimpleTooltip label={t("queueHint")}>
            <Button size="sm" className="max-sm:px-2" onClick={() => message.send("turn")}>
              {message.armed ? <Spinner /> : <ListEnd aria-hidden />}
              <span className="max-sm:sr-only">{t("queue")}</span>
            </Button>
          </SimpleTooltip>
        </>
      )}
      {running ? (
        <IconButton
          label={stopping ? t("stopping") : t("stop")}
          shortcut="escape"
          variant={message.empty ? "default" : "secondary"}
          className="rounded-full"
          disabled={stopping}
          onClick={onStop}
        >
          {stopping ? <Spinner /> : <Square aria-hidden className="size-3 fill-current" />}
        </IconButton>
      ) : (
        <IconButton
          label={message.armed ? t("sendWhenUploaded") : t("send")}
          variant="default"
          className="rounded-full"
          disabled={message.empty || message.armed}
          onClick={() => message.send("turn")}
        >
          {message.armed ? <Spinner /> : <ArrowUp aria-hidden />}
        </IconButton>
      )}
    </div>
  );
}
