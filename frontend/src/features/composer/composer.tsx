"use client";
import { useState } from "react";
import { useSession } from "@/features/chat";
import { MessageBox } from "./message-box";
import { draftThreadId } from "@/lib/draft-thread";

/** The message field. `welcome`: the conversation is empty. */
export function Composer({ welcome }: { welcome: boolean }) {
  const { threadId } = useSession();
  const [place, setPlace] = useState({ threadId, conversation: threadId ?? draftThreadId() });
  // A conversation that begins keeps its field: its id is the one its files were sent to already.
  if (place.threadId !== threadId) setPlace({ threadId, conversation: threadId ?? draftThreadId() });
  const { conversation } = place;
  return (
    <MessageBox key={conversation} conversation={conversation} isNew={threadId === null} welcome={welcome} />
  );
}
