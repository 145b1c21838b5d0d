"use client";
import { useQuery } from "@tanstack/react-query";
import { FileX2, History } from "lucide-react";
import { useLocale, useT } from "@/i18n";
import { formatBytes, formatRelativeTime } from "@/lib/format";
import { Button } from "@/ui/button";
import { EmptyState } from "@/ui/empty-state";
import { versionsQuery } from "./api";

interface Props {
  threadId: string;
  path: string;
  onVersion: (version: number) => void;
}

/** The file is not there any more; what it held may be. */
export function Gone({ threadId, path, onVersion }: Props) {
  const t = useT("artifacts");
  const [locale] = useLocale();
  const { data = [] } = useQuery(versionsQuery(threadId, path));
  return (
    <EmptyState
      className="flex-1"
      icon={<FileX2 />}
      title={t("view.gone")}
      text={data.length ? `${t("view.goneText")} ${t("view.goneVersions")}` : t("view.goneText")}
      action={
        data.length > 0 && (
          <ul className="flex flex-col gap-1.5">
            {data.slice(0, 5).map((one) => (
              <li key={one.version}>
                <Button variant="outline" size="sm" onClick={() => onVersion(one.version)}>
                  <History aria-hidden />
                  {t("versions.number", { n: one.version })}
                  <span className="text-muted-foreground">
                    {formatRelativeTime(one.created_at, locale)} · {formatBytes(one.size)}
                  </span>
                </Button>
              </li>
            ))}
          </ul>
        )
      }
    />
  );
}
