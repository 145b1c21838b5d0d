"use client";
import type { ComponentProps } from "react";
import { TableCopyDropdown, TableDownloadDropdown } from "streamdown";
import { useT } from "@/i18n";
import { ScrollBox } from "@/ui/scroll-box";

/** A table of a text, in the direction of its words: all of it is mirrored, where it begins to scroll included. */
export function Table({ children, dir }: ComponentProps<"table">) {
  const t = useT("markdown");
  return (
    <div data-streamdown="table-wrapper" dir={dir} className="my-4 flex flex-col border border-border">
      <div className="flex items-center justify-end gap-1">
        <TableCopyDropdown />
        <TableDownloadDropdown />
      </div>
      <ScrollBox label={t("table")}>
        <table data-streamdown="table">{children}</table>
      </ScrollBox>
    </div>
  );
}
