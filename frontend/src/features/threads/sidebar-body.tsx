"use client";
import { PanelLeft, Search, SquarePen, WifiOff, X } from "lucide-react";
import { Suspense, useRef, useState, useSyncExternalStore, type MouseEvent } from "react";
import { WaitingButton } from "@/features/decisions";
import { useT } from "@/i18n";
import { afterPage } from "@/lib/late";
import { useDebounced } from "@/lib/debounced";
import { ApiError } from "@/lib/http";
import { isPlainClick, threadPath, useThreadId } from "@/lib/route";
import { shortcutLabel, SHORTCUTS } from "@/lib/shortcuts";
import { Button } from "@/ui/button";
import { IconButton } from "@/ui/icon-button";
import { Kbd } from "@/ui/kbd";
import { Logo } from "@/ui/logo";
import { AccountMenu } from "./account-menu";
import { setArchivedView, useArchivedView } from "./archived-view";
import { startChat } from "@/lib/start-chat";
import { ThreadList } from "./thread-list";
import { useThreads } from "./use-threads";

const SearchResults = afterPage(() => import("./search-results"));
const SidebarLinks = afterPage(() => import("./sidebar-links"));

const DELAY = 200;

interface SidebarBodyProps {
  /** Over the page instead of beside it. */
  drawer?: boolean;
  /** A chat was chosen. */
  onOpen: () => void;
  onCollapse: () => void;
}

export function SidebarBody({ drawer, onOpen, onCollapse }: SidebarBodyProps) {
  const t = useT("threads");
  const common = useT("common");
  const current = useThreadId();
  const [text, setText] = useState("");
  const archived = useArchivedView();
  const query = useDebounced(text.trim(), DELAY);
  const scroller = useRef<HTMLDivElement>(null);
  const newChat = (event: MouseEvent) => {
    if (!isPlainClick(event)) return;
    event.preventDefault();
    startChat();
    onOpen();
  };
  return (
    <>
      <div className="flex h-13 shrink-0 items-center gap-2 pr-2 pl-4">
        <Logo className="size-5.5 text-primary" />
        <span className="flex-1 font-display text-base font-semibold tracking-[-0.012em]">
          {common("appName")}
        </span>
        <IconButton
          label={drawer ? common("close") : t("collapse")}
          shortcut={drawer ? undefined : SHORTCUTS.toggleSidebar}
          className="text-muted-foreground"
          onClick={onCollapse}
        >
          {drawer ? <X aria-hidden /> : <PanelLeft aria-hidden />}
        </IconButton>
      </div>
      <div className="flex flex-col gap-2 px-2 pb-2">
        <Button
          asChild
          variant="outline"
          aria-current={current === null ? "page" : undefined}
          className="group/new justify-start gap-2.5 px-2.5"
        >
          <a href={threadPath(null)} onClick={newChat}>
            <SquarePen aria-hidden />
            {common("newChat")}
            <Kbd className="ml-auto opacity-0 transition-opacity group-hover/new:opacity-100 group-focus-visible/new:opacity-100">
              {shortcutLabel(SHORTCUTS.newChat)}
            </Kbd>
          </a>
        </Button>
        <SearchField text={text} onChange={setText} onDown={() => firstRow(scroller.current)?.focus()} />
        <Suspense fallback={<div className="h-16 pointer-coarse:h-22" />}>
          <SidebarLinks onOpen={onOpen} />
        </Suspense>
        <Suspense>
          <WaitingButton onOpen={onOpen} />
        </Suspense>
      </div>
      <div ref={scroller} className="min-h-0 flex-1 overflow-y-auto px-2 pt-1 pb-4">
        {query ? (
          <Suspense>
            <SearchResults text={query} onOpen={onOpen} />
          </Suspense>
        ) : (
          <ThreadList
            key={String(archived)}
            archived={archived}
            onBack={() => setArchivedView(false)}
            onOpen={onOpen}
          />
        )}
      </div>
      <div className="border-t border-sidebar-border p-2 pb-[max(0.5rem,env(safe-area-inset-bottom))]">
        <Offline />
        <AccountMenu onArchived={() => setArchivedView(true)} />
      </div>
    </>
  );
}

interface SearchFieldProps {
  text: string;
  onChange: (text: string) => void;
  onDown: () => void;
}

function SearchField({ text, onChange, onDown }: SearchFieldProps) {
  const t = useT("threads");
  return (
    <div className="relative">
      <Search
        aria-hidden
        className="pointer-events-none absolute top-1/2 left-2.5 size-4 -translate-y-1/2 text-muted-foreground"
      />
      <input
        type="search"
        value={text}
        placeholder={t("search")}
        aria-label={t("search")}
        onChange={(event) => onChange(event.target.value)}
        onKeyDown={(event) => {
          if (event.nativeEvent.isComposing) return;
          if (event.key === "Escape" && text) {
            event.preventDefault();
            onChange("");
          }
          if (event.key === "ArrowDown") {
            event.preventDefault();
            onDown();
          }
        }}
        className="h-9 w-full rounded-lg bg-sidebar-accent/60 pr-8 pl-8.5 text-[13px] transition-colors outline-none placeholder:text-muted-foreground hover:bg-sidebar-accent focus-visible:bg-background focus-visible:ring-2 focus-visible:ring-ring/60 pointer-coarse:h-11 pointer-coarse:text-base [&::-webkit-search-cancel-button]:hidden"
      />
      {text && (
        <Button
          variant="ghost"
          size="icon-xs"
          aria-label={t("searchClear")}
          className="absolute top-1/2 right-1 -translate-y-1/2 text-muted-foreground"
          onClick={() => onChange("")}
        >
          <X aria-hidden />
        </Button>
      )}
    </div>
  );
}

const firstRow = (root: HTMLElement | null) =>
  root?.querySelector<HTMLElement>("[data-search-row], [data-thread-row]");

function Offline() {
  const t = useT("threads");
  const online = useSyncExternalStore(
    (f) => {
      window.addEventListener("online", f);
      window.addEventListener("offline", f);
      return () => {
        window.removeEventListener("online", f);
        window.removeEventListener("offline", f);
      };
    },
    () => navigator.onLine,
    () => true,
  );
  const { list } = useThreads();
  const reached = !(list.error instanceof ApiError) || list.error.status !== 0;
  if (online && reached) return null;
  return (
    <p role="status" className="flex items-center gap-2 px-2 pb-2 text-xs text-warning">
      <WifiOff aria-hidden className="size-3.5" />
      {t("offline")}
    </p>
  );
}
