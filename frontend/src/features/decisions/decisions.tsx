"use client";
import { Suspense, useEffect, useState } from "react";
import { decisionTexts } from "@/features/chat";
import { LateTexts } from "@/i18n";
import { late } from "@/lib/late";
import { setInbox, useInbox } from "./open";
import { useWaitingNotices } from "./use-waiting-notices";

const InboxSheet = late(() => import("./inbox-sheet"));

export default function Decisions() {
  return (
    <LateTexts of={decisionTexts}>
      <Inbox />
    </LateTexts>
  );
}

function Inbox() {
  const open = useInbox();
  const [used, setUsed] = useState(open);
  if (open && !used) setUsed(true); // it stays, to slide out
  useWaitingNotices(open);
  useEffect(() => () => setInbox(false), []); // another page begins without it
  if (!used) return null;
  return (
    <Suspense>
      <InboxSheet open={open} onOpenChange={setInbox} />
    </Suspense>
  );
}
