export { ConnectionBanner } from "./connection-banner";
export { ContextGauge } from "./context-gauge";
export { SessionContext, SessionProvider, useSession } from "./session";
export type { Interrupt, Outgoing, Queued, RunSettings, Session } from "./session";
export { TodoDock } from "./todo-dock";
export { TurnList } from "./turn-list";
export type { FileRef, Turn } from "./turns";
export { useCost } from "./use-cost";
