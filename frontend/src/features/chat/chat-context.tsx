"use client";
import { createContext, use, useEffect, useState, type ComponentType, type ReactNode } from "react";
import { MarkdownPlace } from "@/features/markdown";
import { runPanel } from "@/lib/route";
import type { ToolCall } from "./thread/message";
import type { RunSettings, Session } from "./thread/session";

/** Actions of a turn's parts. The object stays the same while the session's content changes with every token. */
export interface ChatActions {
  openFile(path: string): void;
  /** Shows when the run did what. */
  openRun(runId: string): void;
  send(text: string): Promise<void>;
  edit(turnId: string, text: string): Promise<void>;
  regenerate(turnId: string): Promise<void>;
  /** With another model than the chosen one, if one is named. */
  retry(turnId: string, modelName?: string): Promise<void>;
  showBranch(turnId: string, index: number): Promise<void>;
  respond(interruptId: string, value: unknown): Promise<void>;
}

export interface Chat {
  threadId: string | null;
  actions: ChatActions;
}

/** For what is shown of a thread that is not open. */
export const ChatContext = createContext<Chat | null>(null);

/** Draws sub-agents that stand together in a turn. The page gives it: their feature is built on this one. */
export const SubAgents = createContext<ComponentType<{ calls: readonly ToolCall[] }>>(() => null);

export function useChat(): Chat {
  const chat = use(ChatContext);
  if (!chat) throw new Error("useChat() needs a <ChatProvider> around it.");
  return chat;
}

interface Source {
  session: Session;
  settings: RunSettings;
  onOpenFile: (path: string) => void;
}

export function ChatProvider({ session, settings, onOpenFile, children }: Source & { children: ReactNode }) {
  const [actions] = useState(() => new LatestActions({ session, settings, onOpenFile }));
  useEffect(() => actions.become({ session, settings, onOpenFile }));
  const { threadId } = session;
  return (
    <ChatContext value={{ threadId, actions }}>
      <MarkdownPlace value={{ threadId, openFile: actions.openFile }}>{children}</MarkdownPlace>
    </ChatContext>
  );
}

/** Acts on the session as it is when something is pressed. */
class LatestActions implements ChatActions {
  constructor(private now: Source) {}

  become(source: Source) {
    this.now = source;
  }

  openFile = (path: string) => this.now.onOpenFile(path);
  openRun = (runId: string) => this.now.onOpenFile(runPanel(runId));
  send = (text: string) => this.now.session.send({ text }, this.now.settings);
  edit = (turnId: string, text: string) => this.now.session.edit(turnId, text, this.now.settings);
  regenerate = (turnId: string) => this.now.session.regenerate(turnId, this.now.settings);
  retry = (turnId: string, modelName = this.now.settings.modelName) =>
    this.now.session.retryTurn(turnId, { ...this.now.settings, modelName });
  showBranch = (turnId: string, index: number) => this.now.session.showBranch(turnId, index);
  respond = (interruptId: string, value: unknown) =>
    this.now.session.respond(interruptId, value, this.now.settings);
}
