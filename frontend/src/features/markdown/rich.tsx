"use client";
import { createCodePlugin } from "@streamdown/code";
import { createMathPlugin } from "@streamdown/math";
import "katex/dist/katex.min.css";
import { useMemo } from "react";
import { defaultRehypePlugins, Streamdown, type PluginConfig, type StreamdownProps } from "streamdown";
import { useT } from "@/i18n";
import { TaskMark } from "@/ui/task-mark";
import { Diagram } from "./diagram";
import { InlineCode, Link, Picture } from "./elements";
import { withClearMath } from "./math";
import { usePlace } from "./place";
import { resolveLinks } from "./resolve-links";

const plugins: PluginConfig = {
  // The usual light theme has too little contrast.
  code: createCodePlugin({ themes: ["github-light-high-contrast", "github-dark"] }),
  math: createMathPlugin(),
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

export default function Rich({ text, streaming }: { text: string; streaming: boolean }) {
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
      {withClearMath(text)}
    </Streamdown>
  );
}

function rehypePluginsFor(path: string) {
  const { raw, sanitize, harden } = defaultRehypePlugins;
  return [raw, [resolveLinks, { path }], sanitize, harden] as StreamdownProps["rehypePlugins"];
}
