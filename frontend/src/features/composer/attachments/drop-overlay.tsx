"use client";
import { Upload } from "lucide-react";
import { useEffect, useEffectEvent, useState } from "react";
import { createPortal } from "react-dom";
import { useT } from "@/i18n";
import { filesOf, LIMITS, megabytes } from "./limits";
import type { Message } from "../use-message";

/** Files may be dropped anywhere in the window; says so while they are dragged over it. */
export function DropOverlay({ onFiles }: { onFiles: Message["addFiles"] }) {
  const t = useT("composer");
  const [over, setOver] = useState(false);
  const take = useEffectEvent(onFiles);

  useEffect(() => {
    let depth = 0;
    const carriesFiles = (event: DragEvent) => event.dataTransfer?.types.includes("Files") ?? false;
    const enter = (event: DragEvent) => {
      if (!carriesFiles(event)) return;
      depth += 1;
      setOver(true);
    };
    const leave = (event: DragEvent) => {
      if (!carriesFiles(event)) return;
      depth = Math.max(0, depth - 1);
      if (depth === 0) setOver(false);
    };
    const hover = (event: DragEvent) => carriesFiles(event) && event.preventDefault();
    const drop = (event: DragEvent) => {
      depth = 0;
      setOver(false);
      if (event.defaultPrevented || !event.dataTransfer || !carriesFiles(event)) return;
      event.preventDefault();
      const { files, folders } = filesOf(event.dataTransfer);
      take(files, folders);
    };
    const listeners = { dragenter: enter, dragleave: leave, dragover: hover, drop } as const;
    for (const [name, f] of Object.entries(listeners)) window.addEventListener(name, f as EventListener);
    return () => {
      for (const [name, f] of Object.entries(listeners)) window.removeEventListener(name, f as EventListener);
    };
  }, []);

  if (!over) return null;
  return createPortal(
    <div className="pointer-events-none fixed inset-0 z-60 flex animate-in items-center justify-center bg-background/80 p-4 backdrop-blur-sm duration-150 fade-in-0">
      <div className="flex flex-col items-center gap-2 rounded-2xl border-2 border-dashed border-primary bg-primary-soft px-12 py-10 text-center">
        <Upload aria-hidden className="mb-1 size-7 text-primary" />
        <p className="text-base font-semibold text-primary">{t("dropTitle")}</p>
        <p className="text-sm text-muted-foreground">
          {t("dropText", { files: LIMITS.files, size: megabytes(LIMITS.fileBytes) })}
        </p>
      </div>
    </div>,
    document.body,
  );
}
