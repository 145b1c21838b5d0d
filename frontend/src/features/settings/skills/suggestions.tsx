"use client";
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { Lightbulb } from "lucide-react";
import Link from "next/link";
import { useState } from "react";
import { useLocale, useT } from "@/i18n";
import { formatRelativeTime } from "@/lib/format";
import { keys } from "@/lib/keys";
import { threadPath } from "@/lib/route";
import { Button } from "@/ui/button";
import { PatchView } from "@/ui/diff-view";
import { ErrorState } from "@/ui/error-state";
import { toast } from "@/ui/toast";
import { Group, Panel } from "../parts";
import { acceptSuggestion, dropSuggestion, skillKeys, suggestions, type Suggestion } from "./api";
import { Findings } from "./findings";
import { Opinion } from "./review-bar";

/** Changes of own skills that agents suggest; none takes effect before it is accepted. */
export function Suggestions() {
  const t = useT("skills.suggestions");
  const { data, error, refetch } = useQuery({ queryKey: skillKeys.suggestions, queryFn: suggestions });
  if (error && !data) return <ErrorState compact error={error} retry={() => void refetch()} />;
  if (!data?.length) return null;
  return (
    <Group title={t("title")}>
      <Panel role="list">
        {data.map((one) => (
          <SuggestionRow key={one.id} suggestion={one} />
        ))}
      </Panel>
    </Group>
  );
}

function SuggestionRow({ suggestion }: { suggestion: Suggestion }) {
  const t = useT("skills.suggestions");
  const [locale] = useLocale();
  const queries = useQueryClient();
  const [pending, setPending] = useState<"accept" | "drop" | null>(null);
  const { id, action, name, file_path, new_content, diff, findings, review, thread_id, ts } = suggestion;
  const decide = async (how: "accept" | "drop") => {
    setPending(how);
    try {
      await (how === "accept" ? acceptSuggestion : dropSuggestion)(id);
      toast.success(t(how === "accept" ? "accepted" : "dropped"));
    } catch (problem) {
      toast.error((problem as Error).message);
    }
    await queries.invalidateQueries({ queryKey: keys.skills });
    setPending(null);
  };
  const what =
    action === "create" || action === "delete" ? action : new_content === null ? "remove" : "change";
  return (
    <div role="listitem" className="flex flex-col gap-3 px-4 py-3.5 sm:px-5">
      <div className="flex items-start gap-2.5">
        <Lightbulb aria-hidden className="mt-0.5 size-4 shrink-0 text-primary" />
        <div className="min-w-0">
          <p className="text-sm font-medium break-words">{t(`what.${what}`, { name, file: file_path })}</p>
          <p className="text-xs leading-relaxed text-muted-foreground">
            {formatRelativeTime(ts, locale)}
            {thread_id && (
              <>
                {" · "}
                <Link href={threadPath(thread_id)} className="underline underline-offset-2">
                  {t("chat")}
                </Link>
              </>
            )}
          </p>
        </div>
      </div>
      <PatchView patch={diff} filename={`${name}/${file_path}`} />
      <Findings findings={findings} />
      {review && <Opinion review={review} />}
      <div className="flex flex-wrap gap-2">
        <Button
          size="sm"
          pending={pending === "accept"}
          disabled={pending !== null}
          onClick={() => void decide("accept")}
        >
          {t("accept")}
        </Button>
        <Button
          size="sm"
          variant="outline"
          pending={pending === "drop"}
          disabled={pending !== null}
          onClick={() => void decide("drop")}
        >
          {t("drop")}
        </Button>
      </div>
    </div>
  );
}
