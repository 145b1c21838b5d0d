"use client";
import { useMutation, useQuery } from "@tanstack/react-query";
import { toast } from "@/ui/toast";
import { useLocale, useT } from "@/i18n";
import { formatRelativeTime } from "@/lib/format";
import { Button } from "@/ui/button";
import { MAX_EDIT, readText, versionsQuery, type FileAt } from "./api";
import { save } from "./editing";
import { isText, kindOf, type Mode } from "./kinds";
import { nameOf } from "@/lib/files";

interface Props {
  file: FileAt;
  mode: Mode;
  onMode: (mode: Mode) => void;
  onNow: () => void;
  onRestored: () => void;
}

/** Says that an earlier state is looked at, and what can be done with it. */
export function VersionBar({ file, mode, onMode, onNow, onRestored }: Props) {
  const t = useT("artifacts.versions");
  const [locale] = useLocale();
  const { data } = useQuery(versionsQuery(file.threadId, file.path));
  const number = file.version ?? 0;
  const version = data?.find((one) => one.version === number);
  const isWritten = isText(kindOf(nameOf(file.path), file.mime)) && file.size <= MAX_EDIT;
  const restore = useMutation({
    mutationFn: async () => {
      const { text } = await readText(file);
      const result = await save(file.threadId, file.path, text, "*");
      if (result.kind !== "saved") throw new Error(t("goneOnRestore"));
    },
    onSuccess: () => {
      toast.success(t("restored", { n: number }));
      onRestored();
      onNow();
    },
    onError: (error) => toast.error(error.message),
  });
  return (
    <div className="flex min-h-10 shrink-0 flex-wrap items-center gap-x-1 gap-y-1 border-b bg-primary-soft py-1.5 pr-2 pl-4 text-[13px] text-primary">
      <span className="min-w-0 flex-1 truncate">
        {version
          ? t("looking", { n: number, time: formatRelativeTime(version.created_at, locale) })
          : t("number", { n: number })}
      </span>
      {isWritten && (
        <>
          <Button
            variant="ghost"
            size="xs"
            aria-pressed={mode === "compare"}
            className="aria-pressed:bg-background"
            onClick={() => onMode(mode === "compare" ? "preview" : "compare")}
          >
            {t("compare")}
          </Button>
          <Button variant="ghost" size="xs" pending={restore.isPending} onClick={() => restore.mutate()}>
            {t("restore")}
          </Button>
        </>
      )}
      <Button variant="outline" size="xs" className="text-foreground" onClick={onNow}>
        {t("backToNow")}
      </Button>
    </div>
  );
}
