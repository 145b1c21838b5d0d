"use client";
import { MarkdownText } from "./markdown-text";
import { TextFrame } from "./text-frame";
import type { ViewerProps } from "./types";

export default function Markdown({ file, onPath }: ViewerProps) {
  return (
    <TextFrame file={file}>
      {(text) => (
        <div tabIndex={0} className="absolute inset-0 overflow-y-auto -outline-offset-2">
          <article className="mx-auto max-w-[46rem] px-5 py-6 @xl:px-8">
            <MarkdownText file={file} onPath={onPath} text={withoutFrontMatter(text)} />
          </article>
        </div>
      )}
    </TextFrame>
  );
}

/** Front matter; the code view shows it. */
const withoutFrontMatter = (text: string) => text.replace(/^\uFEFF?---\r?\n[\s\S]*?\r?\n---\r?\n/, "");
