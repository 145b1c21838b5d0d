export { ChatPage } from "./chat-page";
export { SessionContext, useSession } from "./session";
export type { Interrupt, Outgoing, Queued, RunSettings, Session } from "./session";
export type { FileRef, Turn } from "./turns";
