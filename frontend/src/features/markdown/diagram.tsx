"use client";
import { useTheme } from "next-themes";
import { useEffect, useId, useRef, useState } from "react";
import type { CustomRendererProps } from "streamdown";
import { useT } from "@/i18n";
import { CopyButton } from "@/ui/copy-button";

type Drawing =
  { svg: string; source: string; theme: string } | { error: string; source: string; theme: string };

/** A mermaid diagram. It is drawn when its text is complete and it comes into sight: drawing is slow. */
export function Diagram({ code, isIncomplete }: CustomRendererProps) {
  const t = useT("markdown");
  const { resolvedTheme } = useTheme();
  const theme = resolvedTheme === "dark" ? "dark" : "default";
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
    <div ref={box} className="group/diagram relative my-4 overflow-hidden rounded-xl border bg-card">
      <div className="flex h-9 items-center justify-between pr-1 pl-3.5 text-xs text-muted-foreground">
        {t("diagram")}
        <CopyButton value={code} label={t("copyCode")} />
      </div>
      {drawing && "svg" in drawing ? (
        <div
          role="img"
          aria-label={t("diagram")}
          className="flex min-h-40 justify-center overflow-x-auto border-t p-4 [&_svg]:h-auto [&_svg]:max-w-full"
          dangerouslySetInnerHTML={{ __html: drawing.svg }} // mermaid's own, in its strict mode
        />
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

async function draw(id: string, source: string, theme: "dark" | "default"): Promise<string> {
  const { createMermaidPlugin } = await import("@streamdown/mermaid");
  const mermaid = createMermaidPlugin({ config: { theme, securityLevel: "strict" } }).getMermaid({ theme });
  return (await mermaid.render(id, source)).svg;
}

/** Whether it has ever been in sight. */
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
