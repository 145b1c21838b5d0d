"use client";
import { lazy, Suspense, useState } from "react";
import { LateTexts } from "@/i18n";
import { useInboxOpened } from "./open";
import { useWaitingNotices } from "./use-waiting-notices";

const InboxSheet = lazy(() => import("./inbox-sheet"));

export default function Decisions() {
  return (
    <LateTexts of="decisions">
      <Inbox />
    </LateTexts>
  );
}

function Inbox() {
  const [open, setOpen] = useState(false);
  const [used, setUsed] = useState(false);
  useInboxOpened(() => {
    setUsed(true);
    setOpen(true);
  });
  useWaitingNotices(open);
  if (!used) return null;
  return (
    <Suspense>
      <InboxSheet open={open} onOpenChange={setOpen} />
    </Suspense>
  );
}
