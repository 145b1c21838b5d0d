export { ChatPage } from "./chat-page";
export { Shell } from "./shell";
