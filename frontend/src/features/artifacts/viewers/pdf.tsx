"use client";
import { ExternalLink, FileType } from "lucide-react";
import { useT } from "@/i18n";
import { Button } from "@/ui/button";
import { EmptyState } from "@/ui/empty-state";
import { fileUrl, nameOf } from "@/lib/files";
import type { ViewerProps } from "./types";

/** In the browser's own viewer, which phones and some others do not have. */
export default function Pdf({ file }: ViewerProps) {
  const t = useT("artifacts.pdf");
  const url = fileUrl(file.threadId, file.path, { version: file.version, etag: file.etag });
  if (!navigator.pdfViewerEnabled)
    return (
      <EmptyState
        className="flex-1"
        icon={<FileType />}
        title={t("none")}
        text={t("noneText")}
        action={
          <Button asChild variant="outline" size="sm">
            <a href={url} target="_blank" rel="noopener noreferrer">
              <ExternalLink aria-hidden />
              {t("open")}
            </a>
          </Button>
        }
      />
    );
  return (
    <iframe src={url} title={t("title", { name: nameOf(file.path) })} className="min-h-0 w-full flex-1" />
  );
}
