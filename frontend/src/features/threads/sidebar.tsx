"use client";
import { PanelLeft, Search, SquarePen } from "lucide-react";
import { Suspense, useState } from "react";
import { WaitingButton } from "@/features/decisions";
import { openPalette } from "@/lib/palette";
import { useT } from "@/i18n";
import { SHORTCUTS, useShortcut } from "@/lib/shortcuts";
import { useMedia } from "@/lib/wide-screen";
import { IconButton } from "@/ui/icon-button";
import { focusItself } from "@/ui/dialog";
import { Sheet, SheetContent, SheetTitle } from "@/ui/sheet";
import { AccountMenu } from "./account-menu";
import { useArchivedWish } from "./archived-view";
import { SidebarBody } from "./sidebar-body";
import { usePanel } from "@/lib/route";
import { startChat } from "@/lib/start-chat";
import { useSidebar } from "./use-sidebar";

interface SidebarProps {
  /** Of the drawer on narrow screens; on wide ones the device remembers. */
  open: boolean;
  onOpenChange: (open: boolean) => void;
}

export function Sidebar({ open, onOpenChange }: SidebarProps) {
  const t = useT("threads");
  const wide = useMedia(WIDE);
  const { collapsed, toggle } = useSidebar();
  const panel = usePanel();
  const tight = useMedia(TIGHT);
  const hasPanel = panel.open !== null || panel.task !== null || panel.run !== null;
  const [kept, setKept] = useState(false);
  if (kept && !hasPanel) setKept(false);
  const folds = tight && hasPanel && !kept;
  const expand = () => {
    if (collapsed) toggle();
    setKept(true);
  };
  useShortcut(SHORTCUTS.toggleSidebar, collapsed || folds ? expand : toggle, { enabled: wide });
  useShortcut(SHORTCUTS.newChat, startChat);
  useArchivedWish(() => (wide ? expand() : onOpenChange(true)));
  const onClose = () => onOpenChange(false);

  if (!wide)
    return (
      <Sheet open={open} onOpenChange={onOpenChange}>
        <SheetContent
          side="left"
          closable={false}
          aria-describedby={undefined}
          className="bg-sidebar"
          onOpenAutoFocus={focusItself}
        >
          <SheetTitle className="sr-only">{t("sidebar")}</SheetTitle>
          <SidebarBody drawer onOpen={onClose} onCollapse={onClose} />
        </SheetContent>
      </Sheet>
    );
  if (collapsed || folds) return <Rail onExpand={expand} />;
  return (
    <nav
      aria-label={t("sidebar")}
      className="flex h-full w-66 shrink-0 flex-col border-r border-sidebar-border bg-sidebar print:hidden"
    >
      <SidebarBody onOpen={() => {}} onCollapse={toggle} />
    </nav>
  );
}

/** Remains of the sidebar while it is hidden. */
function Rail({ onExpand }: { onExpand: () => void }) {
  const t = useT("threads");
  const common = useT("common");
  return (
    <nav
      aria-label={t("sidebar")}
      className="flex h-full w-13 shrink-0 flex-col items-center gap-1 border-r border-sidebar-border bg-sidebar py-2.5 print:hidden"
    >
      <IconButton
        label={t("expand")}
        shortcut={SHORTCUTS.toggleSidebar}
        side="right"
        size="icon"
        onClick={onExpand}
      >
        <PanelLeft aria-hidden />
      </IconButton>
      <IconButton
        label={common("newChat")}
        shortcut={SHORTCUTS.newChat}
        side="right"
        size="icon"
        onClick={startChat}
      >
        <SquarePen aria-hidden />
      </IconButton>
      <IconButton
        label={t("search")}
        shortcut={SHORTCUTS.palette}
        side="right"
        size="icon"
        onClick={openPalette}
      >
        <Search aria-hidden />
      </IconButton>
      <Suspense>
        <WaitingButton small />
      </Suspense>
      <div className="mt-auto">
        <AccountMenu small />
      </div>
    </nav>
  );
}

/** From the width on at which a sidebar leaves enough room for the chat. */
const WIDE = "(min-width: 48rem)";
/** Up to the width at which sidebar, chat and a panel leave too little for the chat; it then folds by itself. */
const TIGHT = "(max-width: 79.9rem)";
