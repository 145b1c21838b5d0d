"use client";
import { Lightbulb } from "lucide-react";
import { useState } from "react";
import { useLocale, useT } from "@/i18n";
import { formatDuration } from "@/lib/format";
import { useNow, type PartTime } from "./clock";
import { Markdown } from "@/features/markdown";
import { StepRow } from "./step-row";

interface ThinkingProps {
  text: string;
  streaming: boolean;
  time?: PartTime;
}

/** The model's thinking before it acted: closed, with its duration. */
export function Thinking({ text, streaming, time }: ThinkingProps) {
  const t = useT("chat.steps");
  const [locale] = useLocale();
  const [open, setOpen] = useState(false);
  const now = useNow(streaming);
  const seconds = time ? formatDuration((time.end ?? now) - time.start, locale) : null;
  const title = streaming ? t("thinking") : seconds ? t("thoughtFor", { time: seconds }) : t("thought");
  return (
    <StepRow
      icon={Lightbulb}
      title={title}
      working={streaming}
      meta={streaming ? seconds : null}
      open={open}
      onOpen={setOpen}
    >
      <Markdown text={text} streaming={streaming} className="prose-quiet" />
    </StepRow>
  );
}
