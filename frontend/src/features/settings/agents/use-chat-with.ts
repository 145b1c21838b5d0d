"use client";
import { useRouter } from "next/navigation";
import { prepareChat } from "@/lib/prepare-chat";

/** Opens a new chat which the agent answers. */
export function useChatWith() {
  const router = useRouter();
  return (name: string) => {
    prepareChat({ agent: { name } });
    router.push("/chats");
  };
}
