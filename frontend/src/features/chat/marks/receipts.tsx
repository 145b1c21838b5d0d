"use client";
import { useQuery } from "@tanstack/react-query";
import { Check, Circle, X } from "lucide-react";
import type { ReactNode } from "react";
import { LateTexts, useT } from "@/i18n";
import { threadApi, type Receipts as Found } from "@/lib/api";
import { http } from "@/lib/http";
import { keys } from "@/lib/keys";
import { ErrorState } from "@/ui/error-state";
import { Spinner } from "@/ui/spinner";
import { useChat } from "../chat-context";
import type { Verification } from "../thread/turns";
import { detailTexts } from "../texts";

/** Evidence of a run: claims, checks, commands, files, sources, and open items of its plan. */
export default function Receipts(props: ReceiptsProps) {
  return (
    <LateTexts of={detailTexts} fallback={<Spinner className="mx-auto my-8" />}>
      <Shown {...props} />
    </LateTexts>
  );
}

const GOOD = { verified: true, observed: true, claimed: undefined, contradicted: false } as const;

interface ReceiptsProps {
  threadId: string;
  runId: string;
}

function Shown({ threadId, runId }: ReceiptsProps) {
  const t = useT("details.receipts");
  const { actions } = useChat();
  const { data, error, refetch } = useQuery({
    queryKey: keys.receipts(threadId, runId),
    queryFn: () => http.get<Found>(threadApi(threadId, `/runs/${encodeURIComponent(runId)}/receipts`)),
  });
  if (error) return <ErrorState compact error={error} retry={() => void refetch()} />;
  if (!data) return <Spinner className="mx-auto my-8" />;
  return (
    <div className="flex flex-col gap-3 text-[13px]">
      <p className="text-pretty">{t(`state.${(data.verification ?? "none") as Verification | "none"}`)}</p>
      <List title={t("claims")}>
        {data.claims.map(({ claim, word, seen }) => (
          <Row key={claim} good={GOOD[word]} note={t(`word.${word}`)}>
            {claim === "tests pass" ? t("testsPass") : claim}
            {seen && <span className="block text-xs whitespace-pre-wrap text-muted-foreground">{seen}</span>}
          </Row>
        ))}
      </List>
      <List title={t("checks")}>
        {data.checks.map(({ check, passed }) => (
          <Row key={check} good={passed}>
            <code>{check}</code>
          </Row>
        ))}
      </List>
      <List title={t("refused")}>
        {data.refused.map(({ tool, why }, i) => (
          <Row key={i} good={false}>
            <code>{tool}</code> {why}
          </Row>
        ))}
      </List>
      <List title={t("openTodos")}>
        {data.open_todos.map((todo) => (
          <Row key={todo}>{todo}</Row>
        ))}
      </List>
      <List title={t("commands")}>
        {data.commands.map(({ command, exit_code }, i) => (
          <Row
            key={i}
            good={exit_code === 0}
            note={exit_code ? t("exitCode", { code: exit_code }) : undefined}
          >
            <code>{command}</code>
          </Row>
        ))}
      </List>
      <List title={t("files")}>
        {data.files.map(({ path, sha256 }) => (
          <Row key={path} note={sha256 && `SHA-256 ${sha256.slice(0, 12)}`}>
            <button
              type="button"
              className="text-left underline-offset-2 hover:underline"
              onClick={() => actions.openFile(path)}
            >
              {path.split("/").at(-1)}
            </button>
          </Row>
        ))}
      </List>
      <List title={t("sources")}>
        {data.sources.map((url) => (
          <Row key={url}>{url}</Row>
        ))}
      </List>
    </div>
  );
}

function List({ title, children }: { title: string; children: ReactNode[] }) {
  if (children.length === 0) return null;
  return (
    <section aria-label={title}>
      <h3 className="mb-1 text-xs font-medium text-muted-foreground">{title}</h3>
      <ul className="flex flex-col gap-1">{children}</ul>
    </section>
  );
}

/** `good`: proved or not; undefined where there is nothing to prove. */
function Row({ good, note, children }: { good?: boolean; note?: string; children: ReactNode }) {
  const t = useT("details.receipts");
  const Icon = good === undefined ? Circle : good ? Check : X;
  const tone = good === undefined ? "p-1 text-muted-foreground" : good ? "text-success" : "text-destructive";
  return (
    <li className="flex items-start gap-2">
      <Icon aria-hidden className={`mt-0.5 size-4 shrink-0 ${tone}`} />
      {good !== undefined && <span className="sr-only">{t(good ? "good" : "bad")}: </span>}
      <span className="min-w-0 flex-1 break-words [&_code]:text-xs">{children}</span>
      {note && <span className="shrink-0 text-xs text-muted-foreground tabular-nums">{note}</span>}
    </li>
  );
}
