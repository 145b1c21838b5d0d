"use client";
import { Download } from "lucide-react";
import { useLocale, useT } from "@/i18n";
import { formatBytes, formatRelativeTime } from "@/lib/format";
import { Button } from "@/ui/button";
import type { ListedFile } from "./api";
import { FileTile } from "./file-icon";
import { FileName } from "./file-name";
import { fileUrl, nameOf } from "@/lib/files";
import { folderOf } from "./paths";

interface Props {
  threadId: string;
  file: ListedFile;
  onPath: (path: string) => void;
}

/** One line of a list: the whole of it opens the file. */
export function FileRow({ threadId, file, onPath }: Props) {
  const t = useT("artifacts");
  const [locale] = useLocale();
  const name = nameOf(file.path);
  const folder = folderOf(file.path);
  return (
    <li className="group relative flex items-center gap-3 rounded-lg p-2 transition-colors duration-100 hover:bg-accent has-[button:focus-visible]:bg-accent">
      <FileTile name={name} />
      <div className="min-w-0 flex-1">
        <button
          type="button"
          className="block max-w-full rounded-sm text-left text-sm font-medium after:absolute after:inset-0 after:rounded-lg"
          aria-label={t("openFile", { name })}
          onClick={() => onPath(file.path)}
        >
          <FileName name={name} />
        </button>
        <p className="truncate text-xs text-muted-foreground">
          {folder && folder !== "uploads" && `${folder} · `}
          {formatBytes(file.size)} · <span>{formatRelativeTime(file.modified, locale)}</span>
        </p>
      </div>
      <Button
        asChild
        variant="ghost"
        size="icon-sm"
        className="relative text-muted-foreground opacity-0 transition-opacity group-hover:opacity-100 focus-visible:opacity-100 pointer-coarse:opacity-100"
      >
        <a
          href={fileUrl(threadId, file.path, { download: true })}
          download={name}
          aria-label={t("downloadFile", { name })}
        >
          <Download aria-hidden />
        </a>
      </Button>
    </li>
  );
}
