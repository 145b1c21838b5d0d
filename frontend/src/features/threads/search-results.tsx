"use client";
import { SearchX } from "lucide-react";
import type { KeyboardEvent, MouseEvent, ReactNode } from "react";
import { useT } from "@/i18n";
import type { Hit } from "@/lib/api";
import { isPlainClick, openThread, threadPath } from "@/lib/route";
import { EmptyState } from "@/ui/empty-state";
import { ErrorState } from "@/ui/error-state";
import { Spinner } from "@/ui/spinner";
import { Marked } from "./snippet";
import { useThreadSearch } from "./use-threads";

/** The server's results: chats by their title, and messages. */
export default function SearchResults({ text, onOpen }: { text: string; onOpen: () => void }) {
  const t = useT("threads");
  const common = useT("common");
  const { data, error, isPending, refetch } = useThreadSearch(text);
  if (error && !data) return <ErrorState error={error} retry={() => void refetch()} />;
  if (isPending || !data)
    return (
      <div className="flex justify-center py-8 text-muted-foreground">
        <Spinner label={common("loading")} />
      </div>
    );
  const count = data.titles.length + data.messages.length;
  return (
    <div onKeyDown={moveFocus}>
      <p role="status" className="sr-only">
        {t("found", { count })}
      </p>
      {count === 0 && (
        <EmptyState icon={<SearchX />} title={t("searchNothing")} text={t("searchNothingText", { text })} />
      )}
      {data.titles.length > 0 && (
        <Section title={t("searchTitles")}>
          {data.titles.map((hit) => (
            <Row key={hit.thread_id} id={hit.thread_id} onOpen={onOpen}>
              <span className="block truncate">
                <Marked text={hit.snippet} marks={hit.marks} />
              </span>
            </Row>
          ))}
        </Section>
      )}
      {data.messages.length > 0 && (
        <Section title={t("searchMessages")}>
          {data.messages.map((hit) => (
            <Row key={`${hit.thread_id}/${hit.message_id}`} id={hit.thread_id} onOpen={onOpen}>
              <Said hit={hit} />
            </Row>
          ))}
        </Section>
      )}
    </div>
  );
}

function Said({ hit }: { hit: Hit }) {
  const t = useT("threads");
  const common = useT("common");
  return (
    <>
      <span className="block truncate text-xs text-muted-foreground">
        {hit.title ?? common("untitled")} · {t(hit.type === "human" ? "you" : "agent")}
      </span>
      <span className="line-clamp-2 leading-5 break-words">
        <Marked text={hit.snippet} marks={hit.marks} />
      </span>
    </>
  );
}

function Section({ title, children }: { title: string; children: ReactNode }) {
  return (
    <section className="pb-3">
      <h2 className="px-2.5 py-1 text-xs font-medium text-muted-foreground">{title}</h2>
      <ul className="flex flex-col gap-px">{children}</ul>
    </section>
  );
}

function Row({ id, onOpen, children }: { id: string; onOpen: () => void; children: ReactNode }) {
  const onClick = (event: MouseEvent) => {
    if (!isPlainClick(event)) return;
    event.preventDefault();
    openThread(id);
    onOpen();
  };
  return (
    <li>
      <a
        href={threadPath(id)}
        onClick={onClick}
        data-search-row
        className="block rounded-lg px-2.5 py-1.5 text-[13px] -outline-offset-2 transition-colors duration-100 hover:bg-sidebar-accent/70"
      >
        {children}
      </a>
    </li>
  );
}

function moveFocus(event: KeyboardEvent<HTMLElement>) {
  if (event.key !== "ArrowDown" && event.key !== "ArrowUp") return;
  const rows = Array.from(event.currentTarget.querySelectorAll<HTMLElement>("[data-search-row]"));
  const next = rows[rows.indexOf(event.target as HTMLElement) + (event.key === "ArrowDown" ? 1 : -1)];
  event.preventDefault();
  next?.focus();
}
