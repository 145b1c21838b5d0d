"use client";
import { Check, Ellipsis, Pencil, Trash2, Undo2 } from "lucide-react";
import Link from "next/link";
import { useLocale, useT } from "@/i18n";
import { formatRelativeTime } from "@/lib/format";
import { threadPath } from "@/lib/route";
import { Badge } from "@/ui/badge";
import { Button } from "@/ui/button";
import { DropdownMenu, DropdownMenuContent, DropdownMenuItem, DropdownMenuTrigger } from "@/ui/dropdown-menu";
import { IconButton } from "@/ui/icon-button";
import type { Fact } from "./api";
import { levelOf, threadOf } from "./facts";

interface FactRowProps {
  fact: Fact;
  /** Of one that waits: lets it count. */
  onConfirm?: () => void;
  onEdit: () => void;
  onUndo: () => void;
  onForget: () => void;
}

export function FactRow({ fact, onConfirm, onEdit, onUndo, onForget }: FactRowProps) {
  const t = useT("memory");
  const [locale] = useLocale();
  const thread = threadOf(fact);
  const when = formatRelativeTime(fact.createdAt, locale);
  return (
    <div role="listitem" className="flex items-start gap-3 px-4 py-3 sm:px-5">
      <div className="min-w-0 flex-1">
        <p className="text-sm leading-relaxed [overflow-wrap:anywhere]">{fact.content}</p>
        {fact.sourceError && (
          <p className="mt-0.5 text-[13px] text-muted-foreground">
            {t("instead", { what: fact.sourceError })}
          </p>
        )}
        <p className="mt-1 flex flex-wrap items-center gap-x-2 gap-y-1 text-xs text-muted-foreground">
          {thread ? (
            <Link href={threadPath(thread)} className="underline underline-offset-2">
              {t("fromChat", { when })}
            </Link>
          ) : (
            <span>{t(fact.source === "manual" ? "byYou" : "from", { when })}</span>
          )}
          <span>{t(`level.${levelOf(fact.confidence)}`)}</span>
          {fact.lastUsed && <span>{t("used", { when: formatRelativeTime(fact.lastUsed, locale) })}</span>}
          {fact.untrusted && (
            <Badge
              variant="warning"
              className="max-w-full truncate"
              title={t("untrustedText", { source: fact.untrusted })}
            >
              {t("untrusted", { source: fact.untrusted })}
            </Badge>
          )}
        </p>
        {onConfirm && (
          <div className="mt-2.5 flex flex-wrap gap-2">
            <Button size="sm" aria-label={t("confirmFact", { fact: fact.content })} onClick={onConfirm}>
              <Check aria-hidden />
              {t("confirm")}
            </Button>
            <Button
              size="sm"
              variant="outline"
              aria-label={t("deleteFact", { fact: fact.content })}
              onClick={onForget}
            >
              <Trash2 aria-hidden />
              {t("delete")}
            </Button>
          </div>
        )}
      </div>
      <DropdownMenu>
        <DropdownMenuTrigger asChild>
          <IconButton label={t("more", { fact: fact.content })}>
            <Ellipsis aria-hidden />
          </IconButton>
        </DropdownMenuTrigger>
        <DropdownMenuContent align="end">
          <DropdownMenuItem onSelect={onEdit}>
            <Pencil aria-hidden />
            {t("edit")}
          </DropdownMenuItem>
          {thread && !onConfirm && (
            <DropdownMenuItem onSelect={onUndo}>
              <Undo2 aria-hidden />
              {t("undo")}
            </DropdownMenuItem>
          )}
          <DropdownMenuItem destructive onSelect={onForget}>
            <Trash2 aria-hidden />
            {t("forget")}
          </DropdownMenuItem>
        </DropdownMenuContent>
      </DropdownMenu>
    </div>
  );
}
