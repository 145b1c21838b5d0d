"use client";
import { FileWarning } from "lucide-react";
import { useT } from "@/i18n";
import { EmptyState } from "@/ui/empty-state";
import type { Kind } from "../kinds";

/** A file that is not of the kind that its name claims. The code view shows it. */
export function Broken({ kind }: { kind: Kind }) {
  const t = useT("artifacts");
  return (
    <EmptyState
      icon={<FileWarning />}
      title={t("view.brokenPreview", { kind: t(`kinds.${kind}`) })}
      text={t("view.showCode")}
    />
  );
}
