"use client";
import { useTheme } from "next-themes";
import { useEffect, useId, useRef, useState } from "react";
import type { MermaidConfig } from "@streamdown/mermaid";
import type { CustomRendererProps } from "streamdown";
import { useT } from "@/i18n";
import { loadLate } from "@/lib/late";
import { CopyButton } from "@/ui/copy-button";
import { PictureTools } from "@/ui/picture-tools";

type Drawing =
  { svg: string; source: string; theme: string } | { error: string; source: string; theme: string };

/** A mermaid diagram. It is drawn when its text is complete and it comes into sight: drawing is slow. */
export function Diagram({ code, isIncomplete }: CustomRendererProps) {
  const t = useT("markdown");
  const { resolvedTheme } = useTheme();
  const theme = resolvedTheme === "dark" ? "dark" : "light";
  const id = useId().replace(/\W/g, "");
  const box = useRef<HTMLDivElement>(null);
  const seen = useSeen(box);
  const [drawing, setDrawing] = useState<Drawing | null>(null);
  const ready = seen && !isIncomplete;

  useEffect(() => {
    if (!ready) return;
    let current = true;
    draw(`diagram-${id}-${theme}`, code, theme)
      .then((svg) => current && setDrawing({ svg, source: code, theme }))
      .catch((error: unknown) => current && setDrawing({ error: String(error), source: code, theme }));
    return () => {
      current = false;
    };
  }, [ready, code, theme, id]);

  const failed = drawing && "error" in drawing && drawing.source === code ? drawing.error : null;
  return (
    <div
      ref={box}
      className="group/diagram relative my-4 break-inside-avoid overflow-hidden rounded-xl border bg-card"
    >
      <div className="flex h-9 items-center justify-between pr-1 pl-3.5 text-xs text-muted-foreground">
        {t("diagram")}
        <span className="flex">
          {drawing && "svg" in drawing && (
            <PictureTools source={drawing.svg} name="diagram" alt={t("diagram")} />
          )}
          <CopyButton value={code} label={t("copyCode")} />
        </span>
      </div>
      {drawing && "svg" in drawing ? (
        <div className="flex min-h-40 justify-center border-t p-4">
          {/* As a picture it runs nothing and loads nothing, whatever stands in it. */}
          <img src={drawing.svg} alt={t("diagram")} className="h-auto max-w-full" />
        </div>
      ) : (
        <div className="min-h-40 border-t">
          {failed && <p className="px-3.5 pt-3 text-[13px] text-destructive">{t("diagramFailed")}</p>}
          {!failed && <p className="px-3.5 pt-3 text-[13px] text-muted-foreground">{t("diagramLater")}</p>}
          <pre className="max-h-64 overflow-auto p-3.5 font-mono text-[13px]">{code}</pre>
        </div>
      )}
    </div>
  );
}

/**
 * Diagrams may load nothing while mermaid measures them in the page, either: elements and styles that could are
 * refused.
 */
const QUIET: MermaidConfig = {
  securityLevel: "strict",
  fontFamily: "ui-sans-serif, system-ui, sans-serif", // a picture has none of the page's own fonts
  dompurifyConfig: {
    FORBID_TAGS: [
      "img",
      "image",
      "picture",
      "source",
      "video",
      "audio",
      "iframe",
      "object",
      "embed",
      "link",
      "style",
    ],
    FORBID_ATTR: ["style", "src", "srcset", "href", "background", "poster"],
  },
  secure: [
    "secure",
    "securityLevel",
    "startOnLoad",
    "maxTextSize",
    "maxEdges",
    "dompurifyConfig",
    "fontFamily",
    "themeCSS",
    "themeVariables",
  ],
};

/** The address of a picture of the diagram. Raises what mermaid has to say about a mistake. */
async function draw(id: string, source: string, theme: "dark" | "light"): Promise<string> {
  const { createMermaidPlugin } = await loadLate(() => import("@streamdown/mermaid"));
  const config = { ...QUIET, theme: "base" as const, themeVariables: palette(theme === "dark") };
  const mermaid = createMermaidPlugin({ config }).getMermaid(config);
  const { svg } = await mermaid.render(id, source.replace(/url\s*\(/gi, "url\u200b("));
  const drawn = new DOMParser().parseFromString(svg, "text/html").querySelector("svg");
  const [, , width, height] = (drawn?.getAttribute("viewBox") ?? "").split(/[\s,]+/);
  drawn?.setAttribute("width", width ?? "100%");
  drawn?.setAttribute("height", height ?? "100%");
  return `data:image/svg+xml,${encodeURIComponent(new XMLSerializer().serializeToString(drawn!))}`;
}

/** The page's colours, as mermaid reads them. */
function palette(darkMode: boolean) {
  const styles = getComputedStyle(document.documentElement);
  const pen = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const token = (name: string) => {
    if (!pen) return "#888888";
    pen.fillStyle = styles.getPropertyValue(`--${name}`);
    pen.fillRect(0, 0, 1, 1);
    const parts = [...pen.getImageData(0, 0, 1, 1).data.subarray(0, 3)];
    return `#${parts.map((part) => part.toString(16).padStart(2, "0")).join("")}`;
  };
  const text = token("foreground");
  return {
    darkMode,
    fontFamily: QUIET.fontFamily,
    fontSize: "14px",
    background: token("card"),
    textColor: text,
    primaryColor: token("primary-soft"),
    primaryBorderColor: token("primary"),
    primaryTextColor: text,
    secondaryColor: token("success-soft"),
    secondaryBorderColor: token("success"),
    secondaryTextColor: text,
    tertiaryColor: token("muted"),
    tertiaryBorderColor: token("input"),
    tertiaryTextColor: text,
    lineColor: token("muted-foreground"),
    signalColor: token("muted-foreground"),
    noteBkgColor: token("warning-soft"),
    noteBorderColor: token("warning"),
    noteTextColor: text,
    edgeLabelBackground: token("card"),
    clusterBkg: token("muted"),
    clusterBorder: token("border"),
    errorBkgColor: token("destructive-soft"),
    errorTextColor: token("destructive"),
  };
}

/** True once it has been in sight. */
function useSeen(box: React.RefObject<HTMLElement | null>): boolean {
  const [seen, setSeen] = useState(false);
  useEffect(() => {
    if (!box.current || seen) return;
    const observer = new IntersectionObserver(
      (entries) => entries.some((entry) => entry.isIntersecting) && setSeen(true),
      { rootMargin: "200px" },
    );
    observer.observe(box.current);
    return () => observer.disconnect();
  }, [box, seen]);
  return seen;
}
