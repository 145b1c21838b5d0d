"use client";
import { ImageOff } from "lucide-react";
import { useState } from "react";
import { useT } from "@/i18n";
import { cn } from "@/lib/cn";
import { formatBytes } from "@/lib/format";
import { EmptyState } from "@/ui/empty-state";
import { SegmentedControl } from "@/ui/segmented";
import { PictureTools } from "@/ui/picture-tools";
import { fileUrl, nameOf } from "@/lib/files";
import { kindOf } from "../kinds";
import type { ViewerProps } from "./types";

type Zoom = "fit" | "full";

/** Also for SVG: as a picture it runs no script and loads nothing. */
export default function ImageViewer({ file }: ViewerProps) {
  const t = useT("artifacts.image");
  const words = useT("viewers.image");
  const [zoom, setZoom] = useState<Zoom>("fit");
  const [size, setSize] = useState<[number, number] | null>(null);
  const [failed, setFailed] = useState(false);
  const url = fileUrl(file.threadId, file.path, { version: file.version, etag: file.etag });
  const alt = t("alt", { name: nameOf(file.path) });
  if (failed) return <EmptyState icon={<ImageOff />} title={t("failed")} className="flex-1" />;
  return (
    <>
      <div
        tabIndex={0}
        className={cn(
          "min-h-0 flex-1 overflow-auto bg-muted/40 -outline-offset-2",
          zoom === "fit" ? "flex items-center justify-center p-4" : "p-4",
        )}
      >
        <img
          src={url}
          alt={alt}
          className={cn(
            "rounded-sm bg-[repeating-conic-gradient(var(--muted)_0_25%,var(--background)_0_50%)] bg-size-[16px_16px]",
            zoom === "fit" ? "max-h-full max-w-full object-contain" : "mx-auto max-w-none",
            zoom === "fit" && size?.[0] === 0 && "size-full", // an SVG without a size of its own
          )}
          onLoad={(event) => setSize([event.currentTarget.naturalWidth, event.currentTarget.naturalHeight])}
          onError={() => setFailed(true)}
        />
      </div>
      <footer className="flex min-h-10 shrink-0 items-center gap-3 border-t px-3 py-1 text-xs text-muted-foreground tabular-nums">
        <span>
          {size && size[0] > 0 && `${size[0]} × ${size[1]} · `}
          {formatBytes(file.size)}
        </span>
        <span className="flex-1" />
        {kindOf(nameOf(file.path), file.mime) === "svg" && (
          <PictureTools source={url} name={nameOf(file.path).replace(/\.svg$/i, "")} alt={alt} />
        )}
        <SegmentedControl<Zoom>
          label={words("zoom")}
          size="sm"
          value={zoom}
          onValueChange={setZoom}
          options={[
            { value: "fit", label: words("fit") },
            { value: "full", label: words("full") },
          ]}
        />
      </footer>
    </>
  );
}
