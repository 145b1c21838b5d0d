"use client";
import { useEffect, useEffectEvent, useState } from "react";
import { encode } from "uqr";
import { useT } from "@/i18n";
import { Button } from "@/ui/button";
import { Input } from "@/ui/input";
import { Spinner } from "@/ui/spinner";
import { Field } from "../parts/dialog-form";
import * as api from "./api";

/** Milliseconds between two questions about a code; the server holds each until something happens. */
const PAUSE = 1000;

interface QrSignInProps {
  kind: string;
  /** The bot to be made once the code is confirmed. */
  draft: api.QrDraft;
  onDone: (bot: api.Bot) => Promise<void>;
}

/** Shows a code to scan, until the platform says that it was confirmed. */
export function QrSignIn({ kind, draft, onDone }: QrSignInProps) {
  const t = useT("channels.qr");
  const [attempt, setAttempt] = useState(0);
  const [content, setContent] = useState<string | null>(null);
  const [state, setState] = useState<api.QrState>("waiting");
  const [problem, setProblem] = useState<string | null>(null);
  const [digits, setDigits] = useState("");
  const progress = useEffectEvent((code: api.QrCode, signal: AbortSignal) =>
    api.qrProgress(kind, { ...draft, id: code.id, server: code.server, verify_code: digits }, signal),
  );
  const done = useEffectEvent(onDone);
  useEffect(() => {
    const leaving = new AbortController();
    const { signal } = leaving;
    const follow = async () => {
      const code = await api.qrCode(kind, signal);
      setContent(code.content);
      while (!signal.aborted) {
        const now = await progress(code, signal);
        code.server = now.server;
        setState(now.state);
        if (now.bot) return done(now.bot);
        if (now.state === "expired" || now.state === "canceled") return;
        await new Promise((resolve) => setTimeout(resolve, PAUSE));
      }
    };
    follow().catch((error: Error) => {
      if (!signal.aborted) setProblem(error.message);
    });
    return () => leaving.abort();
  }, [kind, attempt]);
  const again = () => {
    setContent(null);
    setProblem(null);
    setState("waiting");
    setDigits("");
    setAttempt((n) => n + 1);
  };
  const isOver = problem !== null || state === "expired" || state === "canceled";
  return (
    <div className="flex flex-col items-center gap-3 rounded-xl border px-4 py-5 text-center">
      {isOver ? null : content === null ? <Spinner className="size-6" /> : <Picture content={content} />}
      <p role="status" className="text-[13px] leading-relaxed text-muted-foreground">
        {problem ?? t(state)}
      </p>
      {state === "needs_code" && !isOver && (
        <Field label={t("number")}>
          {(given) => (
            <Input
              {...given}
              inputMode="numeric"
              autoComplete="off"
              maxLength={16}
              className="w-40 text-center"
              value={digits}
              onChange={(event) => setDigits(event.target.value)}
            />
          )}
        </Field>
      )}
      {isOver && (
        <Button type="button" variant="outline" size="sm" onClick={again}>
          {t("again")}
        </Button>
      )}
    </div>
  );
}

/** Dark on white in every theme: cameras read no other way as well. */
function Picture({ content }: { content: string }) {
  const t = useT("channels.qr");
  const { data, size } = encode(content, { border: 2, ecc: "M" });
  const dark = data.flatMap((row, y) => row.map((on, x) => (on ? `M${x} ${y}h1v1h-1z` : ""))).join("");
  return (
    <svg
      role="img"
      aria-label={t("picture")}
      viewBox={`0 0 ${size} ${size}`}
      className="size-52 rounded-lg bg-white"
      shapeRendering="crispEdges"
    >
      <path d={dark} className="fill-black" />
    </svg>
  );
}
