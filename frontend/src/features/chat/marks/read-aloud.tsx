"use client";
import { CircleStop, Volume2 } from "lucide-react";
import { LateTexts, useLocale, useT } from "@/i18n";
import { canSpeak, speak, stopSpeaking, useSpeaking } from "@/lib/speech";
import { IconButton } from "@/ui/icon-button";
import { toast } from "@/ui/toast";
import { detailTexts } from "../texts";

interface ReadAloudProps {
  turnId: string;
  /** The answer as it is drawn. */
  answer: () => Element | null;
}

/** The browser reads the answer, or stops. */
export default function ReadAloud(props: ReadAloudProps) {
  if (!canSpeak()) return null;
  return (
    <LateTexts of={detailTexts} fallback={<span className="size-7 pointer-coarse:size-10" />}>
      <Speaker {...props} />
    </LateTexts>
  );
}

function Speaker({ turnId, answer }: ReadAloudProps) {
  const t = useT("details.read");
  const [locale] = useLocale();
  const isSpeaking = useSpeaking() === turnId;
  const start = () =>
    speak(turnId, spokenOf(answer()), locale === "zh" ? "zh-CN" : navigator.language, () =>
      toast.error(t("failed"), { description: t("failedText") }),
    );
  return (
    <IconButton
      label={t(isSpeaking ? "stop" : "start")}
      size="icon-xs"
      className="text-muted-foreground"
      onClick={isSpeaking ? stopSpeaking : start}
    >
      {isSpeaking ? <CircleStop aria-hidden className="text-primary" /> : <Volume2 aria-hidden />}
    </IconButton>
  );
}

/** Not read aloud: code, diagrams, marks of sources, formulas' sources, and what is hidden from readers. */
const SILENT =
  "pre, button, svg, style, annotation, [aria-hidden=true], [data-sources], [data-streamdown=code-block]";
const LINES = "p, li, h1, h2, h3, h4, h5, h6, tr, blockquote, div";

/** The text of an answer, a line for each of its parts. */
export function spokenOf(answer: Element | null): string {
  const copy = answer?.cloneNode(true) as Element | undefined;
  if (!copy) return "";
  copy.querySelectorAll(SILENT).forEach((part) => part.remove());
  copy.querySelectorAll("td, th").forEach((cell) => cell.append(", "));
  copy.querySelectorAll("br").forEach((line) => line.replaceWith("\n"));
  copy.querySelectorAll(LINES).forEach((part) => part.append("\n"));
  return (copy.textContent ?? "").replace(/[ \t]+/g, " ").replace(/(,\s*)?\n\s*/g, "\n");
}
