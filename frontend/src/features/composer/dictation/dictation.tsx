"use client";
import { useQuery } from "@tanstack/react-query";
import { Check, Mic, X } from "lucide-react";
import { useEffect, useRef, useState, type RefObject } from "react";
import { LateTexts, useLocale, useT } from "@/i18n";
import { BY_BROWSER, featuresQuery, isSecure, recognitionOf } from "@/lib/dictation";
import { useStored } from "@/lib/storage";
import { IconButton } from "@/ui/icon-button";
import { Spinner } from "@/ui/spinner";
import { toast } from "@/ui/toast";
import { recognise, record, type Listener, type Listening, type Trouble } from "./listen";
import { texts } from "../texts";

interface DictationProps {
  field: RefObject<HTMLTextAreaElement | null>;
}

/** A microphone, where the server can turn speech into text, or the browser may. */
export default function Dictation({ field }: DictationProps) {
  const { data } = useQuery(featuresQuery);
  const [byBrowser] = useStored(BY_BROWSER, false);
  if (!isSecure()) return null;
  const byServer = data?.transcription.enabled && typeof MediaRecorder === "function";
  if (!byServer && !(byBrowser && recognitionOf())) return null;
  return (
    <LateTexts of={texts}>
      <Microphone field={field} byServer={byServer ?? false} />
    </LateTexts>
  );
}

type State = "idle" | "recording" | "writing";

function Microphone({ field, byServer }: DictationProps & { byServer: boolean }) {
  const t = useT("dictation");
  const [state, setState] = useState<State>("idle");
  const listening = useRef<Listening | null>(null);
  const [locale] = useLocale();
  const asking = useRef(false);
  const gone = useRef(false);
  useEffect(() => {
    gone.current = false;
    return () => {
      gone.current = true;
      listening.current?.cancel();
    };
  }, []);

  const complain = (trouble: Trouble, reason?: string, again?: () => void) =>
    toast.error(t(trouble), {
      description: reason ?? (trouble === "failed" ? undefined : t(`${trouble}Text`)),
      action: again && { label: t("again"), run: again },
    });
  const listener: Listener = {
    onWriting: (on) => {
      listening.current = on;
      setState("writing");
    },
    onText: (text) => insert(field.current, text),
    onTrouble: complain,
    onEnd: () => {
      listening.current = null;
      setState("idle");
      field.current?.focus();
    },
  };
  const start = async () => {
    if (asking.current) return;
    asking.current = true; // the browser may ask whether it may listen
    const language = locale === "zh" ? "zh-CN" : navigator.language;
    const on = byServer ? await record(listener) : recognise(language, listener);
    asking.current = false;
    if (gone.current) return on?.cancel();
    listening.current = on;
    if (on) setState("recording");
  };
  const press = () => (state === "idle" ? void start() : listening.current?.finish());
  return (
    <div
      role="group"
      aria-label={t("start")}
      className="flex items-center gap-1"
      onKeyDown={(event) => {
        if (event.key !== "Escape" || state === "idle") return;
        event.stopPropagation(); // it stops the agent elsewhere
        listening.current?.cancel();
      }}
    >
      <span role="status" className="sr-only">
        {state === "idle" ? "" : t(state)}
      </span>
      {state === "recording" && <Clock />}
      {state !== "idle" && (
        <IconButton
          label={t("cancel")}
          className="text-muted-foreground"
          onClick={() => listening.current?.cancel()}
        >
          <X aria-hidden />
        </IconButton>
      )}
      <IconButton
        label={t(state === "idle" ? "start" : state === "recording" ? "finish" : "writing")}
        variant={state === "recording" ? "secondary" : "ghost"}
        className={state === "recording" ? "rounded-full" : "text-muted-foreground"}
        aria-disabled={state === "writing"}
        onClick={press}
      >
        {state === "idle" ? <Mic aria-hidden /> : state === "recording" ? <Check aria-hidden /> : <Spinner />}
      </IconButton>
    </div>
  );
}

/** For how long it listens. */
function Clock() {
  const [seconds, setSeconds] = useState(0);
  useEffect(() => {
    const began = Date.now();
    const timer = setInterval(() => setSeconds(Math.floor((Date.now() - began) / 1000)), 250);
    return () => clearInterval(timer);
  }, []);
  return (
    <span aria-hidden className="flex items-center gap-1.5 px-1 text-xs text-muted-foreground tabular-nums">
      <span className="size-2 animate-breathe rounded-full bg-destructive" />
      {Math.floor(seconds / 60)}:{String(seconds % 60).padStart(2, "0")}
    </span>
  );
}

/** No blank is inserted before dictated text in scripts without blanks between words. */
const JOINED = /[\p{sc=Han}\p{sc=Hiragana}\p{sc=Katakana}\p{sc=Thai}，。！？；：、]/u;

/** Puts `text` where the caret is, over what is selected, as if it had been typed. */
export function insert(field: HTMLTextAreaElement | null, text: string) {
  if (!field) return;
  const [start, end] = [field.selectionStart, field.selectionEnd];
  const [before, after] = [field.value.slice(0, start).at(-1) ?? "", field.value.slice(end)[0] ?? ""];
  const gap = (left: string, right: string) =>
    left &&
    right &&
    !/\s/.test(left) &&
    !/[\s.,;:!?)\]]/.test(right) &&
    !(JOINED.test(left) || JOINED.test(right))
      ? " "
      : "";
  const whole = gap(before, text[0] ?? "") + text + gap(text.at(-1) ?? "", after);
  field.setRangeText(whole, start, end, "end");
  field.dispatchEvent(new Event("input", { bubbles: true }));
}
