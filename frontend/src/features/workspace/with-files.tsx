"use client";
import { useEffect, useEffectEvent, useRef, type ReactNode } from "react";
import { Group, Panel, Separator, useDefaultLayout } from "react-resizable-panels";
import { ArtifactPanel } from "@/features/artifacts";
import { useSession } from "@/features/chat";
import { useT } from "@/i18n";
import { fillComposer } from "@/lib/compose";
import { usePanel } from "@/lib/route";
import { deviceStorage } from "@/lib/storage";
import { SHORTCUTS, useShortcut } from "@/lib/shortcuts";
import { useWideScreen } from "@/lib/wide-screen";
import { Sheet, SheetContent, SheetTitle } from "@/ui/sheet";

/** Calls `show` when a run that was watched has ended with a single delivered file. */
function useDelivered(show: (path: string) => void) {
  const { running, turns } = useSession();
  const wasRunning = useRef(running);
  const onEnd = useEffectEvent(() => {
    const last = turns.at(-1);
    if (last?.state === "done" && last.presented.length === 1) show(last.presented[0]!);
  });
  useEffect(() => {
    if (wasRunning.current && !running) onEnd();
    wasRunning.current = running;
  }, [running]);
}

/** The files beside the conversation where there is room for both, else over it. */
export function WithFiles({ children }: { children: ReactNode }) {
  const t = useT("common");
  const { threadId } = useSession();
  const panel = usePanel();
  const wide = useWideScreen();
  const layout = useDefaultLayout({ id: "deerflow.panel", storage: deviceStorage });
  useDelivered((path) => {
    if (wide && panel.open === null) panel.set(path);
  });
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
          <Panel id="files" minSize="320px" defaultSize="55%" className="flex min-w-0 flex-col">
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
