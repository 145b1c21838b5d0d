"use client";
import { ImageOff } from "lucide-react";
import { useState } from "react";
import { useT } from "@/i18n";
import { cn } from "@/lib/cn";
import { fileUrl, nameOf } from "@/lib/files";

interface FilePreviewImageProps {
  threadId: string;
  path: string;
  /** Whatever changes with the picture. */
  etag?: string;
  alt?: string;
  className?: string;
}

/** A picture of the thread, whole, in a frame of a given size: nothing moves when it has loaded. */
export function FilePreviewImage({ threadId, path, etag, alt, className }: FilePreviewImageProps) {
  const t = useT("artifacts");
  const [failed, setFailed] = useState<string | null>(null);
  const url = fileUrl(threadId, path, { etag });
  return (
    <div className={cn("flex items-center justify-center overflow-hidden bg-muted/60", className)}>
      {failed === url ? (
        <ImageOff role="img" aria-label={t("image.failed")} className="size-5 text-muted-foreground" />
      ) : (
        <img
          src={url}
          alt={alt ?? t("image.alt", { name: nameOf(path) })}
          loading="lazy"
          decoding="async"
          className="size-full object-contain"
          onError={() => setFailed(url)}
        />
      )}
    </div>
  );
}
