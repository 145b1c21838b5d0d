"use client";
import { cjk } from "@streamdown/cjk";
import { createCodePlugin } from "@streamdown/code";
import { createMathPlugin } from "@streamdown/math";
import "katex/dist/katex.min.css";
import { memo, Suspense, useId, useMemo } from "react";
import {
  defaultRehypePlugins,
  defaultRemarkPlugins,
  Streamdown,
  type PluginConfig,
  type StreamdownProps,
} from "streamdown";
import { useT } from "@/i18n";
import { late } from "@/lib/late";
import { TaskMark } from "@/ui/task-mark";
import { Quote } from "./callout";
import { callouts } from "./callouts";
import { chunksOf } from "./chunks";
import { Sources } from "./sources/citation";
import { withCitations } from "./sources/citations";
import { Diagram } from "./diagram";
import { InlineCode, Link, Picture } from "./elements";
import { withClearMath } from "./math";
import { oneDirection } from "./one-direction";
import { withPlainTags } from "./plain-tags";
import { usePlace } from "./place";
import { resolveLinks } from "./resolve-links";
import { Table } from "./table";

/** `100~200` is a range: only two signs strike a text through, for both plugins that can. */
const DOUBLE = { singleTilde: false };
const withDouble = (plugin: unknown) => [Array.isArray(plugin) ? (plugin[0] as unknown) : plugin, DOUBLE];
const remarkPlugins = Object.entries(defaultRemarkPlugins).map(([name, plugin]) =>
  name === "gfm" ? withDouble(plugin) : plugin,
) as StreamdownProps["remarkPlugins"];

const plugins: PluginConfig = {
  // The usual light theme has too little contrast.
  code: createCodePlugin({ themes: ["github-light-high-contrast", "github-dark"] }),
  math: createMathPlugin(),
  // **注意：** is bold without a blank behind it
  cjk: { ...cjk, remarkPluginsAfter: cjk.remarkPluginsAfter.map(withDouble) } as typeof cjk,
  renderers: [{ language: "mermaid", component: Diagram }],
};

const SourceList = late(() => import("./sources/source-list"));

const nothing = () => null;
const components = {
  input: TaskMark,
  a: Link,
  blockquote: Quote,
  img: Picture,
  table: Table,
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
  const chunks = chunksOf(withPlainTags(withClearMath(cited.text)));
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
  const id = useId();
  // Else a footnote would lead to the first of that number on the page.
  const remarkRehypeOptions = useMemo(
    () => ({
      clobberPrefix: `${id.replace(/\W/g, "")}-`,
      footnoteLabel: t("footnotes"),
      footnoteLabelProperties: {},
      footnoteBackLabel: t("footnoteBack"),
    }),
    [id, t],
  );
  return (
    <Streamdown
      plugins={plugins}
      components={components}
      remarkPlugins={remarkPlugins}
      rehypePlugins={rehypePlugins}
      remarkRehypeOptions={remarkRehypeOptions}
      controls={controls}
      linkSafety={{ enabled: false }}
      lineNumbers={false}
      dir="auto"
      codeBlockMaxHeight={0}
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
  return [
    raw,
    [resolveLinks, { path }],
    sanitize,
    oneDirection,
    callouts,
    harden,
  ] as StreamdownProps["rehypePlugins"];
}
