"use client";
import { ChevronRight } from "lucide-react";
import Link from "next/link";
import { useState, type ReactNode } from "react";
import { useLocale, useT } from "@/i18n";
import { cn } from "@/lib/cn";
import { formatRelativeTime } from "@/lib/format";
import { threadPath } from "@/lib/route";
import { Button } from "@/ui/button";
import { PatchView } from "@/ui/diff-view";
import { toast } from "@/ui/toast";

export interface Change {
  id: string;
  title: string;
  badge?: ReactNode;
  at: string;
  byAgent: boolean;
  /** The chat in which it was made. */
  threadId: string | null;
  filename: string;
  /** A unified diff. */
  diff: string;
  /** Action for a change, and its label. */
  act?: { label: string; run: () => Promise<unknown> };
}

/** Changes of a text, the newest first: each with its author, its diff, and a way back. */
export function History({ changes }: { changes: Change[] }) {
  return (
    <ol className="divide-y rounded-xl border bg-card">
      {changes.map((change, index) => (
        <Entry key={change.id} change={change} begins={index === 0} />
      ))}
    </ol>
  );
}

function Entry({ change, begins }: { change: Change; begins: boolean }) {
  const t = useT("settings.history");
  const [locale] = useLocale();
  const [open, setOpen] = useState(begins);
  const [pending, setPending] = useState(false);
  const run = async () => {
    setPending(true);
    try {
      await change.act?.run();
    } catch (problem) {
      toast.error((problem as Error).message);
    }
    setPending(false);
  };
  return (
    <li className="flex flex-col gap-2.5 px-4 py-3 sm:px-5">
      <div className="flex flex-wrap items-center justify-between gap-x-3 gap-y-2">
        <div className="min-w-0">
          <button
            type="button"
            aria-expanded={open}
            onClick={() => setOpen(!open)}
            className="-ml-1 flex items-center gap-1 rounded-md pr-1 text-left text-sm font-medium pointer-coarse:min-h-10"
          >
            <ChevronRight
              aria-hidden
              className={cn("size-4 text-muted-foreground transition-transform", open && "rotate-90")}
            />
            {change.title}
            {change.badge}
          </button>
          <p className="pl-4 text-xs leading-relaxed text-muted-foreground">
            {t(change.byAgent ? "byAgent" : "byYou")}
            {" · "}
            <time dateTime={change.at}>{formatRelativeTime(change.at, locale)}</time>
            {change.threadId && (
              <>
                {" · "}
                <Link href={threadPath(change.threadId)} className="underline underline-offset-2">
                  {t("chat")}
                </Link>
              </>
            )}
          </p>
        </div>
        {change.act && (
          <Button variant="outline" size="sm" pending={pending} onClick={() => void run()}>
            {change.act.label}
          </Button>
        )}
      </div>
      {open && <PatchView patch={change.diff} filename={change.filename} />}
    </li>
  );
}
