import { afterPage, late } from "@/lib/late";

export { ConnectionBanner } from "./connection-banner";
export { ChatProvider, SubAgents } from "./chat-context";
export { ChildEvents } from "./thread/child-events";
export { useNow } from "./steps/clock";
export { ContextGauge } from "./marks/context-gauge";
export { SessionContext, SessionProvider, useSession } from "./thread/session";
export type { Interrupt, Outgoing, Queued, RunSettings, Session } from "./thread/session";
export { STEP, useOpenFor, useStepMark } from "./steps/shown-step";
export { Steps } from "./steps/steps";
export { EMPTY as EMPTY_THREAD, loaded as threadLoaded, reduce as threadAfter } from "./thread/thread-state";
export type { ThreadState } from "./thread/thread-state";
export { decisionTexts } from "./texts";
export { TodoDock } from "./todo-dock";
export { TurnList } from "./turn-list";
export { describe } from "./tool-card/describe";
export { TurnCache } from "./thread/turns";
export type { FileRef, ToolCall } from "./thread/message";
export type { Turn } from "./thread/turns";
export { useAction } from "./use-action";
export { useCost } from "./marks/use-cost";

/** Open questions of a thread that is not shown. */
export const Elsewhere = late(() => import("./elsewhere"));
export const ChatMarks = afterPage(() => import("./marks/chat-marks"));
