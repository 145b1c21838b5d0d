"use client";
import { Suspense, useState } from "react";
import { LateTexts, serverTexts, useLocale, useT, type Messages } from "@/i18n";
import { withoutAnsi } from "@/lib/ansi";
import { afterPage } from "@/lib/late";
import { formatDuration } from "@/lib/format";
import { useNow, type PartTime } from "../steps/clock";
import { exitCode, hasFailed, isActive, wasRefused, wasStopped } from "../steps/steps-summary";
import { StepRow } from "../steps/step-row";
import type { ToolCall } from "../thread/message";
import { describe } from "./describe";
import { parseHits, parseList } from "./results";

const Body = afterPage(() => import("./body"));

/** Tools that are worth watching while they work. */
const WATCHED = /^(bash|write_file|str_replace|write_todos)$/;

interface ToolCardProps {
  call: ToolCall;
  time?: PartTime;
  /** The agent is at it now: what is worth watching is open by itself. */
  current?: boolean;
}

export function ToolCard({ call, time, current = false }: ToolCardProps) {
  const t = useT("chat");
  const [chosen, setChosen] = useState<boolean | null>(null);
  const { icon, deed, subject, why } = describe(call);
  const failed = hasFailed(call);
  const working = isActive({ kind: "tool", id: call.id, call });
  const verb = t(working ? `doing.${deed}` : `done.${deed}`, { name: subject });
  const isCommand = deed === "run";
  return (
    <StepRow
      icon={icon}
      title={isCommand ? why || verb : verb}
      detail={isCommand ? subject : why}
      mono={isCommand}
      meta={<Meta call={call} time={time} />}
      working={working && call.status !== "waiting"}
      failure={failed && <Failure call={call} />}
      open={chosen ?? (current && call.status !== "waiting" && WATCHED.test(call.name))}
      onOpen={setChosen}
    >
      <Suspense>
        <Body call={call} />
      </Suspense>
    </StepRow>
  );
}

/** In our words where the server names a cause, else in the tool’s. */
function Failure({ call }: { call: ToolCall }) {
  const text = withoutAnsi(failureText(call));
  if (!call.cause) return text;
  return (
    <LateTexts of={serverTexts} fallback={text}>
      <CauseText cause={call.cause} otherwise={text} />
    </LateTexts>
  );
}

function CauseText({ cause, otherwise }: { cause: NonNullable<ToolCall["cause"]>; otherwise: string }) {
  const t = useT("server.tool");
  const code = cause.code as keyof Messages["server"]["tool"];
  return t.has(code) ? t(code, { detail: cause.detail }) : otherwise;
}

function Meta({ call, time }: { call: ToolCall; time?: PartTime }) {
  const t = useT("chat.tool");
  const [locale] = useLocale();
  const now = useNow(time !== undefined && time.end === null);
  const duration = time ? (time.end ?? now) - time.start : 0;
  const changed = call.decision === "edit" ? t("changed") : "";
  const parts = [changed, note(call, t), duration >= 1000 ? formatDuration(duration, locale) : ""].filter(
    Boolean,
  );
  return parts.join(" · ");
}

function note(call: ToolCall, t: ReturnType<typeof useT<"chat.tool">>): string {
  if (call.decision === "respond") return t("answered");
  if (wasStopped(call)) return t("stopped");
  if (wasRefused(call)) return t("refused");
  if (call.status === "waiting") return t("needsYou");
  if (call.status !== "done") return "";
  const code = exitCode(call);
  if (code > 0) return t("exit", { code });
  if (hasFailed(call)) return "";
  if (call.name === "grep") return t("matches", { n: parseList(call.name, call.result).entries.length });
  if (call.name === "ls" || call.name === "glob")
    return t("entries", { n: parseList(call.name, call.result).entries.length });
  if (call.name === "web_search" || call.name === "image_search")
    return t("links", { n: parseHits(call.result).length });
  if (call.name === "read_file") return t("lines", { n: call.result.split("\n").length });
  if (call.name === "write_file")
    return t("lines", {
      n: String(call.args["content"] ?? "")
        .trimEnd()
        .split("\n").length,
    });
  return "";
}

/** The line that says most: of a tool's words the first, of a command's output the last. */
function failureText(call: ToolCall): string {
  const lines = call.result.split("\n").filter((line) => line.trim() && !/^Exit Code: \d+$/.test(line));
  const error = lines.findLast((line) => /^Error: /.test(line));
  const line = error ?? (call.name === "bash" ? lines.at(-1) : lines[0]) ?? "";
  return line.replace(/^Error: /, "").slice(0, 300);
}
