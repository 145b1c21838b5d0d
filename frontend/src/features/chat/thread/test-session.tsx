import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { render } from "@testing-library/react";
import type { ReactNode } from "react";
import { vi } from "vitest";
import { LocaleProvider } from "@/i18n";
import { TooltipProvider } from "@/ui/tooltip";
import { ChildEvents } from "./child-events";
import { ChatProvider } from "../chat-context";
import { SessionContext, type RunSettings, type Session } from "./session";
import type { ToolCall } from "./message";
import type { Turn } from "./turns";

export const settings: RunSettings = { modelName: "m", mode: "pro", effort: null };

/** A session in which everything succeeds and nothing happens, but for what is given. */
export function sessionWith(given: Partial<Session> = {}): Session {
  const done = () => vi.fn(async () => {});
  return {
    threadId: "t",
    phase: "ready",
    loadError: null,
    running: false,
    connection: "live",
    turns: [],
    todos: [],
    title: null,
    interrupts: [],
    queued: [],
    retrying: null,
    silence: null,
    context: null,
    usage: null,
    agent: null,
    childEvents: new ChildEvents(),
    files: [],
    reload: vi.fn(),
    send: done(),
    steer: done(),
    stop: done(),
    cancelQueued: done(),
    edit: done(),
    regenerate: done(),
    retryTurn: done(),
    showBranch: done(),
    respond: done(),
    ...given,
  };
}

export function callWith(given: Partial<ToolCall>): ToolCall {
  return { id: "c1", name: "bash", args: {}, status: "done", result: "", images: [], output: "", ...given };
}

export function turnWith(given: Partial<Turn>): Turn {
  return {
    id: "q1",
    question: { id: "q1", text: "Do it", files: [], images: [], sending: false },
    steps: [],
    answer: null,
    presented: [],
    clarification: null,
    usage: null,
    runId: null,
    lastRunId: null,
    state: "done",
    error: null,
    stopReason: null,
    verification: null,
    startedAt: null,
    endedAt: null,
    branch: null,
    marks: [],
    recalled: null,
    ...given,
  };
}

/** Renders inside of everything that the page gives to the parts of a conversation. */
export function renderChat(
  view: ReactNode,
  session = sessionWith(),
  onOpenFile: (path: string) => void = () => {},
) {
  const client = new QueryClient({ defaultOptions: { queries: { retry: false, enabled: false } } });
  return render(
    <LocaleProvider>
      <QueryClientProvider client={client}>
        <TooltipProvider>
          <SessionContext value={session}>
            <ChatProvider session={session} settings={settings} onOpenFile={onOpenFile}>
              {view}
            </ChatProvider>
          </SessionContext>
        </TooltipProvider>
      </QueryClientProvider>
    </LocaleProvider>,
  );
}
