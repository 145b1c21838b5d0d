"use client";
import { useT } from "@/i18n";
import { Badge } from "@/ui/badge";
import { exitCode, wasStopped } from "../steps/steps-summary";
import type { ToolCall } from "../thread/message";
import { Block, copyable, TerminalText } from "./blocks";
import { Args } from "./describe";

/** A command with what it prints; also a look at a process in the background, which has no command. */
export function CommandBody({ call }: { call: ToolCall }) {
  const t = useT("chat.tool");
  const command = new Args(call.args).text("command");
  const live = call.status === "running";
  const printed = live || wasStopped(call) ? call.output : outputOf(call);
  const code = exitCode(call);
  const process = /^Started process (\S+)\./.exec(call.result)?.[1];
  return (
    <Block copy={command ? () => command : copyable(printed)}>
      {command && (
        <pre className="max-h-40 overflow-auto border-b px-3 py-2 pr-10 font-mono text-[12.5px] leading-[1.6] [overflow-wrap:anywhere] whitespace-pre-wrap">
          <span aria-hidden className="mr-2 text-muted-foreground select-none">
            $
          </span>
          {command}
        </pre>
      )}
      {process ? (
        <p className="px-3 py-2 text-xs text-muted-foreground">{t("process", { id: process })}</p>
      ) : printed ? (
        <TerminalText text={printed} live={live} />
      ) : (
        <p className="px-3 py-2 text-xs text-muted-foreground">{live ? t("waiting") : t("noOutput")}</p>
      )}
      {code > 0 && (
        <div className="border-t px-3 py-1.5">
          <Badge variant="destructive">{t("exit", { code })}</Badge>
        </div>
      )}
    </Block>
  );
}

/** Without the lines that the tool adds for the model. A stopped command has only what came live. */
function outputOf(call: ToolCall): string {
  const text = call.result.replace(/\n?^Exit Code: \d+$/m, "").trimEnd();
  if (text === "(no output)") return "";
  return text || call.output;
}
