"use client";
import { useT } from "@/i18n";
import { useStored } from "@/lib/storage";
import { nameOf } from "@/lib/files";
import CodeMirrorEditor from "./code-mirror";
import { TextFrame } from "./text-frame";
import type { ViewerProps } from "./types";

/** With one value per line, if it is JSON and whole; else as it is. */
export default function Json({ file }: ViewerProps) {
  const t = useT("artifacts.edit");
  const name = nameOf(file.path);
  const [wrap] = useStored("files.wrap", false);
  return (
    <TextFrame file={file}>
      {(text, isPartial) => (
        <CodeMirrorEditor
          text={isPartial ? text : pretty(text)}
          filename="file.json"
          label={t("editor", { name })}
          wrap={wrap}
        />
      )}
    </TextFrame>
  );
}

/** Numbers that JavaScript would round keep the text as it is. */
function pretty(text: string): string {
  if (/\d{16,}/.test(text)) return text;
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}
