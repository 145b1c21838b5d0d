import type { ComponentProps } from "react";
import { useT } from "@/i18n";

/** The box of a task list in Markdown: says whether it is ticked, and cannot be changed. */
export function TaskMark({ checked }: ComponentProps<"input">) {
  const t = useT("common");
  return (
    <input
      type="checkbox"
      disabled
      readOnly
      checked={checked ?? false}
      aria-label={t(checked ? "ticked" : "unticked")}
    />
  );
}
