"use client";
import { useState } from "react";
import { useT } from "@/i18n";
import { FileTile } from "../file-icon";
import { kindOf } from "../kinds";
import { fileUrl, nameOf } from "@/lib/files";
import type { ViewerProps } from "./types";

export default function Media({ file }: ViewerProps) {
  const t = useT("viewers.media");
  const [failed, setFailed] = useState(false);
  const name = nameOf(file.path);
  const src = fileUrl(file.threadId, file.path, { version: file.version, etag: file.etag });
  const isVideo = kindOf(name, file.mime) === "video";
  return (
    <div className="flex min-h-0 flex-1 flex-col items-center justify-center gap-4 bg-muted/40 p-4">
      {failed ? (
        <p role="alert" className="text-sm text-muted-foreground">
          {t("failed")}
        </p>
      ) : isVideo ? (
        <video
          src={src}
          controls
          aria-label={t("video", { name })}
          className="max-h-full max-w-full rounded-lg"
          onError={() => setFailed(true)}
        />
      ) : (
        <>
          <FileTile name={name} className="size-16 rounded-2xl [&_svg]:size-7" />
          <p className="max-w-full truncate text-sm font-medium">{name}</p>
          <audio
            src={src}
            controls
            aria-label={t("audio", { name })}
            className="w-full max-w-md"
            onError={() => setFailed(true)}
          />
        </>
      )}
    </div>
  );
}
