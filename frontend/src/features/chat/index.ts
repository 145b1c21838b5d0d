import { afterPage, late } from "@/lib/late";

export { ConnectionBanner } from "./connection-banner";
export { ChatProvider } from "./chat-context";
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
export type { FileRef, ToolCall, Turn } from "./turns";
export { useAction } from "./use-action";
export { useCost } from "./use-cost";

/** What a thread that is not open waits for. */
export const Elsewhere = late(() => import("./elsewhere"));
export const ChatMarks = afterPage(() => import("./chat-marks"));
