"use client";
import { cjk } from "@streamdown/cjk";
import { createCodePlugin } from "@streamdown/code";
import { createMathPlugin } from "@streamdown/math";
import "katex/dist/katex.min.css";
import { memo, Suspense, useMemo } from "react";
import { defaultRehypePlugins, Streamdown, type PluginConfig, type StreamdownProps } from "streamdown";
import { useT } from "@/i18n";
import { late } from "@/lib/late";
import { TaskMark } from "@/ui/task-mark";
import { chunksOf } from "./chunks";
import { Sources } from "./citation";
import { withCitations } from "./citations";
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

const SourceList = late(() => import("./source-list"));

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

interface ChunkProps {
  text: string;
  streaming: boolean;
}

interface RichProps extends ChunkProps {
  /** A list of what the text cites stands below it. */
  listsSources?: boolean;
}

export default function Rich({ text, streaming, listsSources }: RichProps) {
  const cited = withCitations(text, streaming);
  const chunks = chunksOf(withClearMath(cited.text));
  return (
    <Sources value={cited.sources}>
      {chunks.map((chunk, i) => (
        <Chunk key={i} text={chunk} streaming={streaming && i === chunks.length - 1} />
      ))}
      {listsSources && !streaming && cited.sources.length > 0 && (
        <Suspense fallback={<div className="mt-3 h-8 pointer-coarse:h-10" />}>
          <SourceList sources={cited.sources} />
        </Suspense>
      )}
    </Sources>
  );
}

const Chunk = memo(function Chunk({ text, streaming }: ChunkProps) {
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
