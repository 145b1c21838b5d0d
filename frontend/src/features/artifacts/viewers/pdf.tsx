"use client";
import { ExternalLink, FileType } from "lucide-react";
import { useT } from "@/i18n";
import { Button } from "@/ui/button";
import { EmptyState } from "@/ui/empty-state";
import { fileUrl, nameOf } from "@/lib/files";
import type { ViewerProps } from "./types";

/** Opens at the width of the page, without a column of thumbnails: the first two are for Firefox, the others for Chromium. */
const AT_WIDTH = "#pagemode=none&zoom=page-width&navpanes=0&view=FitH";

/** In the browser's own viewer, which phones and some others do not have. */
export default function Pdf({ file }: ViewerProps) {
  const t = useT("viewers.pdf");
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
    <iframe
      src={url + AT_WIDTH}
      title={t("title", { name: nameOf(file.path) })}
      className="min-h-0 w-full flex-1"
    />
  );
}
