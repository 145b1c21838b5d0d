"use client";
import { Suspense, type ReactNode } from "react";
import { ArtifactPanel } from "@/features/artifacts";
import { useSession } from "@/features/chat";
import { useT } from "@/i18n";
import { afterPage, late } from "@/lib/late";
import { fillComposer } from "@/lib/compose";
import { usePanel } from "@/lib/route";
import { useStored } from "@/lib/storage";
import { SHORTCUTS, useShortcut } from "@/lib/shortcuts";
import { useWideScreen } from "@/lib/wide-screen";
import { Sheet, SheetContent, SheetTitle } from "@/ui/sheet";
import { useDelivered } from "./use-delivered";

const TaskPanel = late(async () => ({ default: (await import("@/features/tasks")).TaskPanel }));
const Timeline = afterPage(() => import("@/features/runs"));

/** The files, or the timeline of a run, beside the conversation where there is room for both, else over it. */
export function WithFiles({ children }: { children: ReactNode }) {
  const t = useT("common");
  const { threadId } = useSession();
  const panel = usePanel();
  const wide = useWideScreen();
  const [share, setShare] = useStored("filesShare", SHARE.usual);
  useDelivered((path) => {
    if (wide && panel.open === null && panel.task === null && panel.run === null) panel.set(path);
  });
  useShortcut(SHORTCUTS.files, () => panel.set(panel.open === null ? "" : null), {
    enabled: threadId !== null,
  });

  const files = threadId !== null && panel.open !== null && (
    <ArtifactPanel
      threadId={threadId}
      path={panel.open}
      onPath={panel.set}
      onClose={() => panel.set(null)}
      onTellAgent={(text) => {
        fillComposer(text);
        if (!wide) panel.set(null);
      }}
    />
  );
  const task = threadId !== null && panel.task !== null && (
    <Suspense>
      <TaskPanel key={panel.task} id={panel.task} />
    </Suspense>
  );
  const timeline = threadId !== null && panel.run !== null && (
    <Suspense>
      <Timeline
        key={panel.run}
        threadId={threadId}
        runId={panel.run}
        onClose={() => panel.set(null)}
        onShown={() => wide || panel.set(null)}
      />
    </Suspense>
  );
  const beside = files || task || timeline;
  const label = t(timeline ? "timeline" : "files");
  return (
    <div className="flex min-w-0 flex-1 print:block">
      <div className="flex min-w-0 flex-1 flex-col print:block">{children}</div>
      {wide && beside && (
        <>
          <Splitter label={label} share={share} onShare={setShare} />
          <div
            className="flex shrink-0 flex-col print:hidden"
            style={{ width: `clamp(20rem, ${share}%, calc(100% - 22.5rem))` }}
          >
            {beside}
          </div>
        </>
      )}
      {!wide && beside && (
        <Sheet open onOpenChange={(stays) => !stays && panel.set(null)}>
          <SheetContent closable={false} aria-describedby={undefined} className="max-w-none sm:max-w-none">
            {!task && <SheetTitle className="sr-only">{label}</SheetTitle>}
            {beside}
          </SheetContent>
        </Sheet>
      )}
    </div>
  );
}

/** Per cent of the width that the files may take; the device remembers it. */
const SHARE = { least: 30, usual: 55, most: 75 };

interface SplitterProps {
  label: string;
  share: number;
  onShare: (share: number) => void;
}

/** Between the conversation and its files, moved with the pointer or the arrow keys. */
function Splitter({ label, share, onShare }: SplitterProps) {
  const set = (next: number) => onShare(Math.round(Math.min(SHARE.most, Math.max(SHARE.least, next))));
  return (
    <div
      role="separator"
      data-separator=""
      aria-label={label}
      aria-orientation="vertical"
      aria-valuemin={SHARE.least}
      aria-valuemax={SHARE.most}
      aria-valuenow={share}
      tabIndex={0}
      className="relative w-px shrink-0 cursor-col-resize touch-none bg-border outline-offset-2 transition-colors before:absolute before:-inset-x-1.5 before:inset-y-0 hover:bg-ring focus-visible:bg-ring print:hidden"
      onPointerDown={({ currentTarget, pointerId }) => currentTarget.setPointerCapture(pointerId)}
      onPointerMove={({ currentTarget, pointerId, clientX }) => {
        if (!currentTarget.hasPointerCapture(pointerId)) return;
        const { right, width } = currentTarget.parentElement!.getBoundingClientRect();
        set(((right - clientX) / width) * 100);
      }}
      onKeyDown={(event) => {
        const step = { ArrowLeft: 5, ArrowRight: -5 }[event.key];
        if (!step) return;
        event.preventDefault();
        set(share + step);
      }}
    />
  );
}
