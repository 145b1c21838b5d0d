"use client";
import { use } from "react";
import { browser } from "react-dom";
import { AuthGuard } from "@/features/auth";
import { SessionProvider } from "@/features/chat";
import { useThreadId } from "@/lib/route";
import { TooltipProvider } from "@/ui/tooltip";
import { Shell } from "./shell";
import { Workspace } from "./workspace";

/** `/chats` and `/chats/<thread>`. */
export function ChatPage() {
  use(browser("the conversation comes from the address and the network"));
  const threadId = useThreadId();
  return (
    <AuthGuard waiting={<Shell />}>
      <SessionProvider threadId={threadId}>
        <TooltipProvider>
          <Workspace />
        </TooltipProvider>
      </SessionProvider>
    </AuthGuard>
  );
}
