"use client";
import { CircleCheck } from "lucide-react";
import Link from "next/link";
import { useEffect, useRef } from "react";
import { useT } from "@/i18n";
import { Button } from "@/ui/button";

/** Says that models were connected, and leads to a chat with them. Takes the focus that the form has lost. */
export function Connected({ models }: { models: number }) {
  const t = useT("models.connect");
  const link = useRef<HTMLAnchorElement>(null);
  useEffect(() => link.current?.focus(), [models]);
  return (
    <div className="flex flex-wrap items-center justify-between gap-3 rounded-xl bg-success-soft p-4 sm:px-5">
      <p role="status" className="flex items-center gap-2 text-sm font-medium text-success">
        <CircleCheck aria-hidden className="size-4 shrink-0" />
        {t("done", { count: models })}
      </p>
      <Button asChild size="sm">
        <Link ref={link} href="/chats">
          {t("start")}
        </Link>
      </Button>
    </div>
  );
}
