"use client";
import { useQuery } from "@tanstack/react-query";
import { History } from "lucide-react";
import { useLocale, useT } from "@/i18n";
import { cn } from "@/lib/cn";
import { formatBytes, formatRelativeTime } from "@/lib/format";
import { Button } from "@/ui/button";
import {
  DropdownMenu,
  DropdownMenuContent,
  DropdownMenuLabel,
  DropdownMenuRadioGroup,
  DropdownMenuRadioItem,
  DropdownMenuTrigger,
} from "@/ui/dropdown-menu";
import { versionsQuery } from "./api";

interface Props {
  threadId: string;
  path: string;
  /** null: now. */
  version: number | null;
  onVersion: (version: number | null) => void;
}

/** Menu of a file's versions; renders nothing if there is only one. */
export function VersionPicker({ threadId, path, version, onVersion }: Props) {
  const t = useT("artifacts.versions");
  const [locale] = useLocale();
  const { data = [] } = useQuery(versionsQuery(threadId, path));
  if (data.length < 2 && version === null) return null;
  return (
    <DropdownMenu>
      <DropdownMenuTrigger asChild>
        <Button
          variant="ghost"
          size="xs"
          title={t("label")}
          aria-label={`${t("label")}: ${version === null ? data.length : `v${version}`}`}
          className={cn(
            "shrink-0 px-1.5 tabular-nums",
            version === null ? "text-muted-foreground" : "bg-primary-soft text-primary",
          )}
        >
          <History aria-hidden />
          {version === null ? data.length : `v${version}`}
        </Button>
      </DropdownMenuTrigger>
      <DropdownMenuContent align="start" className="max-h-96 w-64">
        <DropdownMenuLabel>{t("label")}</DropdownMenuLabel>
        <DropdownMenuRadioGroup
          value={version === null ? "now" : String(version)}
          onValueChange={(next) => onVersion(next === "now" ? null : Number(next))}
        >
          <DropdownMenuRadioItem value="now">{t("now")}</DropdownMenuRadioItem>
          {data.map((one, index) =>
            // The newest is what there is now, as long as nothing has touched it since.
            index === 0 ? null : (
              <DropdownMenuRadioItem key={one.version} value={String(one.version)}>
                <span className="min-w-0">
                  <span className="block">{t("number", { n: one.version })}</span>
                  <span className="block truncate text-xs text-muted-foreground">
                    {formatRelativeTime(one.created_at, locale)} · {t(one.run_id ? "byRun" : "byPerson")} ·{" "}
                    {formatBytes(one.size)}
                  </span>
                </span>
              </DropdownMenuRadioItem>
            ),
          )}
        </DropdownMenuRadioGroup>
      </DropdownMenuContent>
    </DropdownMenu>
  );
}
