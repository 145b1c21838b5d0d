"use client";
import { Download } from "lucide-react";
import { useLocale, useT } from "@/i18n";
import { formatBytes } from "@/lib/format";
import { Button } from "@/ui/button";
import { FileTile } from "../file-icon";
import { kindOf } from "../kinds";
import { fileUrl, nameOf } from "@/lib/files";
import type { ViewerProps } from "./types";

/** Facts and download of a file that has no preview. */
export default function Unknown({ file }: ViewerProps) {
  const t = useT("viewers.unknown");
  const view = useT("artifacts.view");
  const [locale] = useLocale();
  const name = nameOf(file.path);
  const kind = kindOf(name, file.mime);
  const title = kind === "office" || kind === "archive" ? t(kind) : t("binary");
  const facts = [
    [t("type"), file.mime.split(";")[0]],
    [t("size"), formatBytes(file.size)],
    [t("modified"), file.modified && new Date(file.modified).toLocaleString(locale)],
    [t("path"), file.path],
  ];
  return (
    <div className="flex min-h-0 flex-1 flex-col items-center justify-center gap-5 overflow-y-auto p-6 text-center">
      <FileTile name={name} className="size-14 rounded-2xl [&_svg]:size-6" />
      <div className="space-y-1">
        <p className="text-sm font-medium">{title}</p>
        <p className="text-sm text-muted-foreground">{t("text")}</p>
      </div>
      <Button asChild size="sm">
        <a
          href={fileUrl(file.threadId, file.path, { version: file.version, download: true })}
          download={name}
        >
          <Download aria-hidden />
          {view("download")}
        </a>
      </Button>
      <dl className="grid w-full max-w-md grid-cols-[auto_1fr] gap-x-4 gap-y-1.5 border-t pt-4 text-left text-xs">
        {facts.map(([label, value]) => (
          <div key={label} className="contents">
            <dt className="text-muted-foreground">{label}</dt>
            <dd className="break-all">{value}</dd>
          </div>
        ))}
      </dl>
    </div>
  );
}
