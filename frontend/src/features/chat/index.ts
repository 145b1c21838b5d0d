import { afterPage, late } from "@/lib/late";

export { ConnectionBanner } from "./connection-banner";
export { ChatProvider, SubAgents } from "./chat-context";
export { ChildEvents } from "./child-events";
export { useNow } from "./clock";
export { ContextGauge } from "./context-gauge";
export { SessionContext, SessionProvider, useSession } from "./session";
export type { Interrupt, Outgoing, Queued, RunSettings, Session } from "./session";
export { STEP, useOpenFor, useStepMark } from "./shown-step";
export { Steps } from "./steps";
export { EMPTY as EMPTY_THREAD, loaded as threadLoaded, reduce as threadAfter } from "./thread-state";
export type { ThreadState } from "./thread-state";
export { TodoDock } from "./todo-dock";
export { TurnList } from "./turn-list";
export { describe } from "./tool-card/describe";
export { TurnCache } from "./turns";
export type { FileRef, ToolCall } from "./message";
export type { Turn } from "./turns";
export { useAction } from "./use-action";
export { useCost } from "./use-cost";

/** Open questions of a thread that is not shown. */
export const Elsewhere = late(() => import("./elsewhere"));
export const ChatMarks = afterPage(() => import("./chat-marks"));
