"use client";
import { useQuery } from "@tanstack/react-query";
import { ExternalLink, FileType, FileWarning } from "lucide-react";
import { useT } from "@/i18n";
import { Button } from "@/ui/button";
import { EmptyState } from "@/ui/empty-state";
import { fileUrl, nameOf } from "@/lib/files";
import { request } from "@/lib/http";
import type { FileAt } from "../api";
import { Waiting } from "./text-frame";
import type { ViewerProps } from "./types";

/** Opens at the width of the page, without a column of thumbnails: the first two are for Firefox, the others for Chromium. */
const AT_WIDTH = "#pagemode=none&zoom=page-width&navpanes=0&view=FitH";

/** Bytes at each end of a file that tell whether it is one. */
const END = 64 << 10;

/** In the browser's own viewer, which phones and some others do not have. What it cannot open it would not explain. */
export default function Pdf({ file }: ViewerProps) {
  const t = useT("viewers.pdf");
  const url = fileUrl(file.threadId, file.path, { version: file.version, etag: file.etag });
  const damaged = useQuery({
    queryKey: ["pdf", file.threadId, file.path, file.version ?? "now", file.etag],
    queryFn: ({ signal }) => isDamaged(url, file.size, signal),
    retry: false,
    staleTime: Infinity,
  });
  if (damaged.isPending) return <Waiting />;
  if (damaged.data || !navigator.pdfViewerEnabled)
    return (
      <EmptyState
        className="flex-1"
        icon={damaged.data ? <FileWarning /> : <FileType />}
        title={t(damaged.data ? "damaged" : "none")}
        text={t(damaged.data ? "damagedText" : "noneText")}
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

/** True if its header, its first object or its end is missing. */
async function isDamaged(url: string, size: FileAt["size"], signal: AbortSignal): Promise<boolean> {
  const part = async (start: number) => {
    const headers = { Range: `bytes=${start}-${start + END - 1}` };
    const answer = await request("GET", url, { signal, headers });
    return new TextDecoder("latin1").decode(await answer.arrayBuffer());
  };
  const head = await part(0);
  const end = size > END ? await part(size - END) : head;
  return !head.slice(0, 1024).includes("%PDF-") || !/\d\s+obj\b/.test(head) || !end.includes("startxref");
}
