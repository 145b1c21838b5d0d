"use client";
import { useState, type ReactNode } from "react";
import { Group, Panel, Separator, useDefaultLayout } from "react-resizable-panels";
import { ArtifactPanel } from "@/features/artifacts";
import { Composer } from "@/features/composer";
import { useLiveLists } from "@/features/live";
import { useDoneNotification } from "@/features/notifications";
import { CommandPalette } from "@/features/palette";
import { Sidebar } from "@/features/threads";
import { useT } from "@/i18n";
import { fillComposer, focusComposer } from "@/lib/compose";
import { usePanel } from "@/lib/route";
import { SHORTCUTS, useShortcut } from "@/lib/shortcuts";
import { useWideScreen } from "@/lib/wide-screen";
import { Sheet, SheetContent, SheetTitle } from "@/ui/sheet";
import { ConnectionBanner } from "./connection-banner";
import { Header } from "./header";
import { useSession } from "./session";
import { TodoDock } from "./todo-dock";
import { TurnList } from "./turn-list";
import { Welcome } from "./welcome";

/** The whole page: conversations on the left, this one in the middle, its files on the right. */
export function Workspace() {
  const t = useT("common");
  const [drawer, setDrawer] = useState(false);
  useLiveLists();
  useDoneNotification();
  useShortcut(SHORTCUTS.focusComposer, () => focusComposer(), { inInputs: true });

  return (
    <div className="flex h-dvh overflow-hidden bg-background text-foreground">
      <a
        href="#conversation"
        className="sr-only bg-background focus:not-sr-only focus:absolute focus:z-50 focus:m-2 focus:rounded-md focus:p-2"
      >
        {t("skipToChat")}
      </a>
      <Sidebar open={drawer} onClose={() => setDrawer(false)} />
      <WithFiles>
        <Header onMenu={() => setDrawer(true)} />
        <ConnectionBanner />
        <Conversation />
      </WithFiles>
      <CommandPalette />
    </div>
  );
}

function Conversation() {
  const panel = usePanel();
  const { threadId, turns, phase } = useSession();
  const isNew = threadId === null && turns.length === 0 && phase === "ready";
  return (
    <main id="conversation" className="flex min-h-0 flex-1 flex-col" tabIndex={-1}>
      {isNew ? (
        <div className="min-h-0 flex-1 overflow-y-auto">
          <Welcome onPick={fillComposer} />
        </div>
      ) : (
        <TurnList onOpenFile={panel.set} />
      )}
      {phase === "ready" && (
        <div className="mx-auto w-full max-w-3xl shrink-0 px-3 pb-[max(0.75rem,env(safe-area-inset-bottom))] sm:px-4">
          <TodoDock />
          <Composer welcome={isNew} />
        </div>
      )}
    </main>
  );
}

/** The files beside the conversation where there is room for both, else over it. */
function WithFiles({ children }: { children: ReactNode }) {
  const t = useT("common");
  const { threadId } = useSession();
  const panel = usePanel();
  const wide = useWideScreen();
  const layout = useDefaultLayout({ id: "deerflow.files", storage: localStorage });
  const open = panel.open !== null && threadId !== null;
  useShortcut(SHORTCUTS.files, () => panel.set(panel.open === null ? "" : null), {
    enabled: threadId !== null,
  });

  const files = open && (
    <ArtifactPanel
      threadId={threadId}
      path={panel.open ?? ""}
      onPath={panel.set}
      onClose={() => panel.set(null)}
      onTellAgent={(text) => {
        fillComposer(text);
        if (!wide) panel.set(null);
      }}
    />
  );
  return (
    <Group
      className="min-w-0 flex-1"
      orientation="horizontal"
      defaultLayout={open && wide ? layout.defaultLayout : undefined}
      onLayoutChanged={open && wide ? layout.onLayoutChanged : undefined}
    >
      <Panel id="chat" minSize="360px" className="flex min-w-0 flex-col">
        {children}
      </Panel>
      {wide && files && (
        <>
          <Separator
            aria-label={t("files")}
            className="w-px bg-border outline-offset-2 transition-colors hover:bg-ring focus-visible:bg-ring"
          />
          <Panel id="files" minSize="320px" defaultSize="44%" className="flex min-w-0 flex-col">
            {files}
          </Panel>
        </>
      )}
      {!wide && files && (
        <Sheet open onOpenChange={(stays) => !stays && panel.set(null)}>
          <SheetContent closable={false} aria-describedby={undefined} className="max-w-none sm:max-w-none">
            <SheetTitle className="sr-only">{t("files")}</SheetTitle>
            {files}
          </SheetContent>
        </Sheet>
      )}
    </Group>
  );
}
