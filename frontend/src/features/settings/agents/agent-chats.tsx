"use client";
import { useQuery } from "@tanstack/react-query";
import { MessageSquare } from "lucide-react";
import Link from "next/link";
import { useLocale, useT } from "@/i18n";
import { formatRelativeTime } from "@/lib/format";
import { threadPath } from "@/lib/route";
import { EmptyState } from "@/ui/empty-state";
import { Panel, Waiting } from "../parts";
import { agentKeys, chats } from "./api";

/** The chats with an agent, the newest first. */
export function AgentChats({ name }: { name: string }) {
  const t = useT("agents");
  const common = useT("common");
  const [locale] = useLocale();
  const { data, error, refetch } = useQuery({
    queryKey: agentKeys.chats(name),
    queryFn: () => chats(name),
    staleTime: 0,
  });
  if (!data) return <Waiting error={error} retry={() => void refetch()} />;
  if (data.length === 0)
    return (
      <Panel>
        <EmptyState icon={<MessageSquare />} title={t("noChats")} className="py-8" />
      </Panel>
    );
  return (
    <ul aria-label={t("chatsWith", { name })} className="divide-y rounded-xl border bg-card">
      {data.map(({ thread_id: id = "", values, updated_at }) => (
        <li key={id}>
          <Link
            href={threadPath(id)}
            className="flex min-h-11 items-center gap-3 px-4 py-2.5 text-sm -outline-offset-2 hover:bg-accent/40 sm:px-5"
          >
            <span className="min-w-0 flex-1 truncate">
              {typeof values?.title === "string" && values.title ? values.title : common("untitled")}
            </span>
            {updated_at && (
              <span className="shrink-0 text-xs text-muted-foreground">
                {formatRelativeTime(updated_at, locale)}
              </span>
            )}
          </Link>
        </li>
      ))}
    </ul>
  );
}
