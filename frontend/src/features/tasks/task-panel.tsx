"use client";
import { X } from "lucide-react";
import { useLayoutEffect, useRef, type ReactNode } from "react";
import { ChatProvider, useSession } from "@/features/chat";
import { LateTexts, useT } from "@/i18n";
import { nameOf, shortPath, threadPathOf } from "@/lib/files";
import { usePanel } from "@/lib/route";
import { useRunSettings } from "@/lib/run-settings";
import { useWideScreen } from "@/lib/wide-screen";
import { Badge } from "@/ui/badge";
import { IconButton } from "@/ui/icon-button";
import { SheetTitle } from "@/ui/sheet";
import { Spinner } from "@/ui/spinner";
import { Meta, StatusIcon, StopButton } from "./parts";
import { Transcript } from "./transcript";
import { taskCalls, useTasks, type ShownTask } from "./use-tasks";
import { texts } from "./texts";

/** A sub-agent beside the chat: its whole transcript. Fills its parent. */
export function TaskPanel({ id }: { id: string }) {
  const session = useSession();
  const settings = useRunSettings(session.threadId);
  const panel = usePanel();
  return (
    <LateTexts of={texts} fallback={<Waiting />}>
      <ChatProvider session={session} settings={settings} onOpenFile={panel.set}>
        <Panel id={id} />
      </ChatProvider>
    </LateTexts>
  );
}

function Panel({ id }: { id: string }) {
  const t = useT("tasks");
  const common = useT("common");
  const panel = usePanel();
  const { turns, phase } = useSession();
  const Title = useWideScreen() ? "h2" : SheetTitle; // a sheet has to be named
  const [task] = useTasks(taskCalls(turns).filter((call) => call.id === id));
  return (
    <section
      aria-label={task?.description || t("group")}
      className="@container flex h-full min-h-0 min-w-0 flex-col bg-background"
    >
      <header className="flex h-12 shrink-0 items-center gap-2 border-b pr-2 pl-4">
        {task && <StatusIcon status={task.status} />}
        <Title className="min-w-0 truncate font-sans text-sm leading-6 font-medium tracking-normal">
          {task?.description ?? t("group")}
        </Title>
        {task && (
          <Badge variant="secondary" className="hidden font-normal @md:inline-flex">
            {task.type}
          </Badge>
        )}
        <span className="flex-1" />
        {task && <StopButton task={task} />}
        <IconButton label={common("close")} className="text-muted-foreground" onClick={() => panel.set(null)}>
          <X aria-hidden />
        </IconButton>
      </header>
      {task && <Content task={task} />}
      {!task && phase === "loading" && <Waiting />}
      {!task && phase === "ready" && <p className="p-4 text-sm text-muted-foreground">{t("unknown")}</p>}
    </section>
  );
}

function Content({ task }: { task: ShownTask }) {
  const t = useT("tasks");
  const status = useT("tasks.status");
  const isOdd = task.status !== "completed" && task.status !== "running";
  return (
    <Following>
      <p className="flex flex-wrap items-center gap-x-2 pb-2 text-xs text-muted-foreground">
        {task.status !== "completed" && <span>{status(task.status)}</span>}
        <Meta task={task} />
      </p>
      <Transcript task={task} />
      {isOdd && task.error && <p className="py-1 text-[13px] break-words text-destructive">{task.error}</p>}
      {task.files.length > 0 && (
        <section className="mt-3 border-t pt-3">
          <h3 className="mb-1 font-sans text-xs font-medium tracking-normal text-muted-foreground">
            {t("filesChanged")}
          </h3>
          <ul className="flex flex-col gap-1">
            {task.files.map((path) => (
              <FileLine key={path} path={path} />
            ))}
          </ul>
        </section>
      )}
    </Following>
  );
}

function FileLine({ path }: { path: string }) {
  const t = useT("chat.tool");
  const panel = usePanel();
  const own = threadPathOf(path);
  const look = "font-mono text-[12.5px] break-all";
  if (!own) return <li className={look}>{shortPath(path)}</li>;
  return (
    <li>
      <button
        type="button"
        title={t("open", { name: nameOf(path) })}
        className={`${look} rounded-sm text-left underline decoration-border underline-offset-3 hover:decoration-current`}
        onClick={() => panel.set(own)}
      >
        {shortPath(path)}
      </button>
    </li>
  );
}

/** Distance from the end, in pixels, up to which the view follows new content. */
const NEAR = 48;

/** Keeps the end in sight while it grows, unless one scrolls up. */
function Following({ children }: { children: ReactNode }) {
  const t = useT("tasks");
  const box = useRef<HTMLDivElement>(null);
  const follows = useRef(true);
  useLayoutEffect(() => {
    const { current } = box;
    if (current && follows.current) current.scrollTop = current.scrollHeight;
  });
  return (
    <div
      ref={box}
      role="log"
      aria-live="off"
      aria-label={t("steps")}
      tabIndex={0}
      className="min-h-0 flex-1 overflow-y-auto px-4 py-3 -outline-offset-2"
      onScroll={({ currentTarget: { scrollHeight, scrollTop, clientHeight } }) => {
        follows.current = scrollHeight - scrollTop - clientHeight < NEAR;
      }}
    >
      {children}
    </div>
  );
}

function Waiting() {
  return (
    <div className="flex flex-1 items-center justify-center text-muted-foreground">
      <Spinner />
    </div>
  );
}
