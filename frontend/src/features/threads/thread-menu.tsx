"use client";
import {
  Archive,
  ArchiveRestore,
  Download,
  Link,
  Pencil,
  Pin,
  PinOff,
  SquareCheck,
  Trash2,
} from "lucide-react";
import { toast } from "@/ui/toast";
import { useT } from "@/i18n";
import { threadPath } from "@/lib/route";
import { copyText } from "@/ui/copy-button";
import {
  DropdownMenuContent,
  DropdownMenuItem,
  DropdownMenuSeparator,
  DropdownMenuSub,
  DropdownMenuSubContent,
  DropdownMenuSubTrigger,
} from "@/ui/dropdown-menu";
import { downloadThread } from "@/lib/export";
import type { ThreadItem } from "./group";

interface ThreadMenuProps {
  thread: ThreadItem;
  onRename: () => void;
  onPin: () => void;
  onArchive: () => void;
  onChoose: () => void;
  onDelete: () => void;
}

export function ThreadMenu({ thread, onRename, onPin, onArchive, onChoose, onDelete }: ThreadMenuProps) {
  const t = useT("threads");
  const common = useT("common");
  const copyLink = async () => {
    const done = await copyText(threadLink(thread.id));
    if (done) toast.success(t("linkCopied"));
    else toast.error(t("linkFailed"));
  };
  return (
    <DropdownMenuContent align="start" className="w-52">
      <DropdownMenuItem onSelect={onRename}>
        <Pencil aria-hidden />
        {t("rename")}
      </DropdownMenuItem>
      <DropdownMenuItem onSelect={onPin}>
        {thread.pinned ? <PinOff aria-hidden /> : <Pin aria-hidden />}
        {t(thread.pinned ? "unpin" : "pin")}
      </DropdownMenuItem>
      <DropdownMenuItem onSelect={() => void copyLink()}>
        <Link aria-hidden />
        {t("copyLink")}
      </DropdownMenuItem>
      <DropdownMenuSub>
        <DropdownMenuSubTrigger>
          <Download aria-hidden />
          {t("export")}
        </DropdownMenuSubTrigger>
        <DropdownMenuSubContent>
          <DropdownMenuItem onSelect={() => downloadThread(thread.id, "md")}>
            {t("exportMd")}
          </DropdownMenuItem>
          <DropdownMenuItem onSelect={() => downloadThread(thread.id, "json")}>
            {t("exportJson")}
          </DropdownMenuItem>
          <DropdownMenuItem onSelect={() => downloadThread(thread.id, "zip")}>
            {t("exportZip")}
          </DropdownMenuItem>
        </DropdownMenuSubContent>
      </DropdownMenuSub>
      <DropdownMenuItem onSelect={onChoose}>
        <SquareCheck aria-hidden />
        {t("choose")}
      </DropdownMenuItem>
      <DropdownMenuSeparator />
      <DropdownMenuItem onSelect={onArchive}>
        {thread.archived ? <ArchiveRestore aria-hidden /> : <Archive aria-hidden />}
        {t(thread.archived ? "unarchive" : "archive")}
      </DropdownMenuItem>
      <DropdownMenuItem destructive onSelect={onDelete}>
        <Trash2 aria-hidden />
        {common("delete")}
      </DropdownMenuItem>
    </DropdownMenuContent>
  );
}

export const threadLink = (id: string) => window.location.origin + threadPath(id);
