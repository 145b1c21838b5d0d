"use client";
import { Suspense, useState } from "react";
import { ConnectionBanner, SubAgents, TodoDock, TurnList, useSession } from "@/features/chat";
import { Composer } from "@/features/composer";
import { Decisions } from "@/features/decisions";
import { useLiveLists } from "@/features/live";
import { useDoneNotification } from "@/features/notifications";
import { CommandPalette } from "@/features/palette";
import { Sidebar } from "@/features/threads";
import { useT } from "@/i18n";
import { fillComposer, focusComposer } from "@/lib/compose";
import { afterPage, late } from "@/lib/late";
import { usePanel } from "@/lib/route";
import { SHORTCUTS, useShortcut } from "@/lib/shortcuts";
import { Header } from "./header";
import { Welcome } from "./welcome";
import { WithFiles } from "./with-files";

const Notice = afterPage(() => import("./notice"));
const AskAbout = afterPage(() => import("./ask-about"));
const TaskGroup = late(async () => ({ default: (await import("@/features/tasks")).TaskGroup }));
const TaskDock = late(async () => ({ default: (await import("@/features/tasks")).TaskDock }));

/** The whole page: conversations on the left, this one in the middle, its files on the right. */
export function Workspace() {
  const t = useT("common");
  const [drawer, setDrawer] = useState(false);
  useLiveLists();
  useDoneNotification();
  useShortcut(SHORTCUTS.focusComposer, () => focusComposer(), { inInputs: true });

  return (
    <div className="flex h-dvh overflow-hidden bg-background text-foreground print:block print:h-auto print:overflow-visible">
      <a
        href="#conversation"
        className="sr-only bg-background focus:not-sr-only focus:absolute focus:z-50 focus:m-2 focus:rounded-md focus:p-2"
      >
        {t("skipToChat")}
      </a>
      <Sidebar open={drawer} onOpenChange={setDrawer} />
      <SubAgents value={TaskGroup}>
        <WithFiles>
          <Header onMenu={() => setDrawer(true)} />
          <div className="[anchor-name:--banners]">
            <ConnectionBanner />
            <Suspense>
              <Notice />
            </Suspense>
          </div>
          <Conversation />
        </WithFiles>
      </SubAgents>
      <CommandPalette />
      <Suspense>
        <Decisions />
        <AskAbout />
      </Suspense>
    </div>
  );
}

function Conversation() {
  const panel = usePanel();
  const { threadId, turns, phase, running } = useSession();
  const delegates = turns.at(-1)?.steps.some((part) => part.kind === "tool" && part.call.args.background);
  const isNew = threadId === null && turns.length === 0 && phase === "ready";
  return (
    <main id="conversation" className="flex min-h-0 flex-1 flex-col print:block" tabIndex={-1}>
      {isNew ? (
        <div className="min-h-0 flex-1 overflow-y-auto">
          <Welcome onPick={fillComposer} />
        </div>
      ) : (
        <TurnList onOpenFile={panel.set} />
      )}
      {phase === "ready" && (
        <div className="mx-auto w-full max-w-3xl shrink-0 px-3 pb-[max(0.75rem,env(safe-area-inset-bottom))] sm:px-4 print:hidden">
          {running && delegates && (
            <Suspense>
              <TaskDock />
            </Suspense>
          )}
          <TodoDock />
          <Composer welcome={isNew} />
        </div>
      )}
    </main>
  );
}
