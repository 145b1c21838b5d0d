"use client";
import { useQuery } from "@tanstack/react-query";
import { Download } from "lucide-react";
import { useT } from "@/i18n";
import { cn } from "@/lib/cn";
import { formatBytes } from "@/lib/format";
import { Button } from "@/ui/button";
import { SimpleTooltip } from "@/ui/tooltip";
import { deliveredQuery } from "./api";
import { FileTile } from "./file-icon";
import { FileName } from "./file-name";
import { FilePreviewImage } from "./image-preview";
import { kindName, kindOf } from "./kinds";
import { fileUrl, nameOf } from "@/lib/files";

export interface FileCardProps {
  threadId: string;
  path: string;
  onOpen: (path: string) => void;
  className?: string;
}

/** A delivered file in the conversation: what it is, how large, and the way to it. Pictures are shown. */
export function FileCard({ threadId, path, onOpen, className }: FileCardProps) {
  const t = useT("artifacts");
  const { data } = useQuery(deliveredQuery(threadId));
  const file = data?.artifacts.find((one) => one.path === path);
  const gone = data && !file && !data.truncated && path.startsWith("/mnt/user-data/outputs/");
  const name = nameOf(path);
  const kind = kindOf(name, file?.mime_type);
  const isPicture = (kind === "image" || kind === "svg") && !gone;
  const facts = [t(`kinds.${kindName(name, kind)}`), file && formatBytes(file.size), gone && t("card.gone")]
    .filter(Boolean)
    .join(" · ");
  return (
    <div
      className={cn(
        "group relative w-full max-w-sm break-inside-avoid self-start overflow-hidden rounded-xl border bg-card transition-colors duration-150 hover:border-input has-[button:focus-visible]:border-ring",
        isPicture && "order-first", // in a grid pictures stand together, so that no row has a hole
        className,
      )}
    >
      {isPicture && (
        <FilePreviewImage
          threadId={threadId}
          path={path}
          etag={file && `${file.size}-${file.modified}`}
          alt=""
          className="aspect-16/10 w-full border-b"
        />
      )}
      <div className="flex items-center gap-3 p-2.5">
        <FileTile name={name} />
        <div className="min-w-0 flex-1">
          <button
            type="button"
            className="block max-w-full text-left text-sm font-medium outline-none after:absolute after:inset-0"
            aria-label={t("openFile", { name })}
            onClick={() => onOpen(path)}
          >
            <FileName name={name} className={cn(gone && "text-muted-foreground line-through")} />
          </button>
          <p className="truncate text-xs text-muted-foreground">{facts}</p>
        </div>
        {!gone && (
          <SimpleTooltip label={t("view.download")}>
            <Button asChild variant="ghost" size="icon-sm" className="relative text-muted-foreground">
              <a
                href={fileUrl(threadId, path, { download: true })}
                download={name}
                aria-label={t("downloadFile", { name })}
              >
                <Download aria-hidden />
              </a>
            </Button>
          </SimpleTooltip>
        )}
      </div>
    </div>
  );
}
