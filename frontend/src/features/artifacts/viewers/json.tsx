"use client";
import { useMemo } from "react";
import { useT } from "@/i18n";
import { useStored } from "@/lib/storage";
import { nameOf } from "@/lib/files";
import { pretty } from "../json";
import CodeMirrorEditor from "./code-mirror";
import { TextFrame } from "./text-frame";
import type { ViewerProps } from "./types";

/** With one value per line, if it is JSON and whole; else as it is. */
export default function Json({ file }: ViewerProps) {
  return (
    <TextFrame file={file}>
      {(text, isPartial) => <Lines name={nameOf(file.path)} text={text} isPartial={isPartial} />}
    </TextFrame>
  );
}

function Lines({ name, text, isPartial }: { name: string; text: string; isPartial: boolean }) {
  const t = useT("artifacts.edit");
  const words = useT("viewers.json");
  const [wrap] = useStored("files.wrap", false);
  const shown = useMemo(() => (isPartial ? text : pretty(text)), [text, isPartial]);
  const isBroken = typeof shown !== "string";
  return (
    <div className="absolute inset-0 flex flex-col">
      {isBroken && (
        <p role="note" className="shrink-0 border-b bg-warning-soft px-4 py-1.5 text-[13px] text-warning">
          {words("broken", { line: shown.line, column: shown.column })}
        </p>
      )}
      <div className="relative min-h-0 flex-1">
        <CodeMirrorEditor
          text={isBroken ? text : shown}
          filename="file.json"
          label={t("editor", { name })}
          wrap={wrap}
        />
      </div>
    </div>
  );
}
