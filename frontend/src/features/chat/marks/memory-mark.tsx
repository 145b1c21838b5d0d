"use client";
import { Brain } from "lucide-react";
import Link from "next/link";
import { useState } from "react";
import { LateTexts, useT } from "@/i18n";
import { settingsPath } from "@/lib/route";
import { Popover, PopoverContent, PopoverTrigger } from "@/ui/popover";
import { MemorySwitch } from "./memory-switch";
import { useSession } from "../thread/session";
import type { Recalled } from "../thread/message";
import type { Turn } from "../thread/turns";
import { detailTexts } from "../texts";

interface MemoryMarkProps {
  threadId: string;
  turn: Turn;
  recalled: Recalled;
}

/** That something remembered was given to the model with a message; opens what. */
export default function MemoryMark(props: MemoryMarkProps) {
  return (
    <LateTexts of={detailTexts}>
      <Mark {...props} />
    </LateTexts>
  );
}

function Mark({ threadId, turn, recalled }: MemoryMarkProps) {
  const t = useT("details.memory");
  const [open, setOpen] = useState(false);
  return (
    <Popover open={open} onOpenChange={setOpen}>
      <PopoverTrigger className="flex items-center gap-1 rounded-md px-1.5 py-1 text-xs whitespace-nowrap text-muted-foreground transition-colors hover:bg-accent data-[state=open]:bg-accent">
        <Brain aria-hidden className="size-3.5 shrink-0" />
        {t("title")}
      </PopoverTrigger>
      <PopoverContent align="start" className="flex max-h-96 w-96 flex-col gap-3" aria-label={t("used")}>
        <p className="font-medium">{t("used")}</p>
        <Given recalled={recalled} />
        <Earlier turnId={turn.id} />
        <Link href={settingsPath("memory")} className="text-[13px] underline underline-offset-2">
          {t("manage")}
        </Link>
        <MemorySwitch threadId={threadId} className="border-t pt-3" />
      </PopoverContent>
    </Popover>
  );
}

/** Facts given with earlier messages are still in the model's context, and are not given twice. */
function Earlier({ turnId }: { turnId: string }) {
  const t = useT("details.memory");
  const { turns } = useSession();
  const before = turns.slice(
    0,
    turns.findIndex(({ id }) => id === turnId),
  );
  const given = before.flatMap(({ recalled }) => (recalled ? [recalled] : []));
  if (!given.length) return null;
  return (
    <section aria-label={t("earlier")} className="flex flex-col gap-2 border-t pt-3">
      <h3 className="text-xs font-medium text-muted-foreground">{t("earlier")}</h3>
      {given.map((one, i) => (
        <Given key={i} recalled={one} />
      ))}
    </section>
  );
}

function Given({ recalled: { text } }: { recalled: Recalled }) {
  const t = useT("details.memory");
  const [summaries, facts] = splitRecalled(text);
  return (
    <div className="flex flex-col gap-2 text-[13px]">
      <Lines title={t("facts")} lines={facts} />
      <Lines title={t("summaries")} lines={summaries} />
    </div>
  );
}

function Lines({ title, lines }: { title: string; lines: readonly string[] }) {
  if (!lines.length) return null;
  return (
    <section aria-label={title}>
      <h3 className="mb-1 text-xs font-medium text-muted-foreground">{title}</h3>
      <ul className="flex list-disc flex-col gap-1 pl-4">
        {lines.map((line) => (
          <li key={line} className="break-words">
            {line}
          </li>
        ))}
      </ul>
    </section>
  );
}

/** Content of the memory block in the prompt, without headings and marks: summaries about the person, and facts. */
export function splitRecalled(text: string): [summaries: string[], facts: string[]] {
  const lines = text.split("\n");
  const at = lines.indexOf("Facts:");
  const end = at < 0 ? lines.length : at;
  const items = (some: string[]) => some.filter((line) => line.startsWith("- ")).map((line) => line.slice(2));
  const facts = items(lines.slice(end)).map((line) => line.replace(/^\[[^\]|]+\| [\d.]+\] /, ""));
  return [items(lines.slice(0, end)), facts];
}
