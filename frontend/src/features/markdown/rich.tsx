"use client";
import { cjk } from "@streamdown/cjk";
import { createCodePlugin } from "@streamdown/code";
import { createMathPlugin } from "@streamdown/math";
import "katex/dist/katex.min.css";
import { memo, useMemo } from "react";
import { defaultRehypePlugins, Streamdown, type PluginConfig, type StreamdownProps } from "streamdown";
import { useT } from "@/i18n";
import { TaskMark } from "@/ui/task-mark";
import { chunksOf } from "./chunks";
import { Diagram } from "./diagram";
import { InlineCode, Link, Picture } from "./elements";
import { withClearMath } from "./math";
import { usePlace } from "./place";
import { resolveLinks } from "./resolve-links";

const plugins: PluginConfig = {
  // The usual light theme has too little contrast.
  code: createCodePlugin({ themes: ["github-light-high-contrast", "github-dark"] }),
  math: createMathPlugin(),
  cjk, // **注意：** is bold without a blank behind it
  renderers: [{ language: "mermaid", component: Diagram }],
};

const nothing = () => null;
const components = {
  input: TaskMark,
  a: Link,
  img: Picture,
  inlineCode: InlineCode,
  // Whatever could load something from elsewhere by itself.
  source: nothing,
  video: nothing,
  audio: nothing,
  iframe: nothing,
  object: nothing,
  embed: nothing,
} as StreamdownProps["components"];

const controls: StreamdownProps["controls"] = {
  code: { copy: true, download: false },
  table: { copy: true, download: true, fullscreen: false },
};

interface RichProps {
  text: string;
  streaming: boolean;
}

export default function Rich({ text, streaming }: RichProps) {
  const chunks = chunksOf(withClearMath(text));
  return chunks.map((chunk, i) => (
    <Chunk key={i} text={chunk} streaming={streaming && i === chunks.length - 1} />
  ));
}

const Chunk = memo(function Chunk({ text, streaming }: RichProps) {
  const t = useT("markdown");
  const common = useT("common");
  const path = usePlace()?.path ?? "";
  const rehypePlugins = useMemo(() => rehypePluginsFor(path), [path]); // Streamdown goes by identity
  return (
    <Streamdown
      plugins={plugins}
      components={components}
      rehypePlugins={rehypePlugins}
      controls={controls}
      linkSafety={{ enabled: false }}
      lineNumbers={false}
      dir="auto"
      codeBlockMaxHeight={0}
      tableMaxHeight={0}
      isAnimating={streaming}
      mode={streaming ? "streaming" : "static"}
      translations={{
        copyCode: t("copyCode"),
        copied: common("copied"),
        close: common("close"),
        copyTable: common("copy"),
        downloadTable: common("download"),
      }}
    >
      {text}
    </Streamdown>
  );
});

function rehypePluginsFor(path: string) {
  const { raw, sanitize, harden } = defaultRehypePlugins;
  return [raw, [resolveLinks, { path }], sanitize, harden] as StreamdownProps["rehypePlugins"];
}
