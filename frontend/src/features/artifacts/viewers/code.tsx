"use client";
import { useT } from "@/i18n";
import { useStored } from "@/lib/storage";
import { kindOf } from "../kinds";
import { nameOf } from "@/lib/files";
import CodeMirrorEditor from "./code-mirror";
import { TextFrame } from "./text-frame";
import type { ViewerProps } from "./types";

export default function Code({ file }: ViewerProps) {
  const t = useT("artifacts.edit");
  const name = nameOf(file.path);
  const [wrap] = useStored("files.wrap", false);
  const isProse = ["text", "markdown"].includes(kindOf(name, file.mime));
  return (
    <TextFrame file={file}>
      {(text) => (
        <CodeMirrorEditor text={text} filename={name} label={t("editor", { name })} wrap={wrap || isProse} />
      )}
    </TextFrame>
  );
}
