"use client";
import { useMutation } from "@tanstack/react-query";
import { Brain, CircleCheck, CircleX, Eye, Gauge, Plug, ScrollText, TriangleAlert } from "lucide-react";
import type { ReactNode } from "react";
import { LateTexts, serverTexts, useLocale, useT } from "@/i18n";
import type { Model } from "@/lib/api";
import { formatDuration, formatTokens } from "@/lib/format";
import { ApiError } from "@/lib/http";
import { Badge } from "@/ui/badge";
import { Button } from "@/ui/button";
import { testModel } from "./api";

type Tested = Awaited<ReturnType<typeof testModel>>;

export function ModelCard({ model }: { model: Model }) {
  const t = useT("models");
  const test = useMutation({ mutationFn: () => testModel(model.name) });
  const rest = test.data ? test.data.rest : model.rest;
  return (
    <div role="listitem" className="flex flex-col gap-2.5 px-4 py-4 sm:px-5">
      <div className="flex items-start gap-4">
        <div className="min-w-0 flex-1">
          <div className="flex flex-wrap items-center gap-x-2 gap-y-1">
            <h2 className="min-w-0 font-medium break-words">{model.display_name}</h2>
            {model.is_default && <Badge>{t("default")}</Badge>}
            {model.problem && <Badge variant="warning">{t("problem")}</Badge>}
          </div>
          {model.model !== model.display_name && (
            <p className="mt-0.5 font-mono text-xs break-all text-muted-foreground">{model.model}</p>
          )}
          {model.description && (
            <p className="mt-1 text-[13px] leading-relaxed text-muted-foreground">{model.description}</p>
          )}
        </div>
        <Button
          variant="outline"
          size="sm"
          pending={test.isPending}
          onClick={() => test.mutate()}
          aria-label={`${t("test")}: ${model.display_name}`}
        >
          {!test.isPending && <Plug aria-hidden />}
          {test.isPending ? t("testing") : test.isSuccess || test.isError ? t("testAgain") : t("test")}
        </Button>
      </div>
      <Abilities model={model} />
      {model.problem && (
        <Outcome tone="text-warning" icon={<TriangleAlert aria-hidden />}>
          {t("missing", { names: model.missing.join(", ") })}
        </Outcome>
      )}
      {rest && (
        <Outcome tone="text-warning" icon={<TriangleAlert aria-hidden />}>
          {t(`rests.${rest.reason}`)}
        </Outcome>
      )}
      <div role="status" className="empty:hidden">
        <TestOutcome test={test} />
      </div>
      <p className="text-xs leading-relaxed break-words text-muted-foreground">{origin(model, t)}</p>
    </div>
  );
}

function origin({ discovered_from: from }: Model, t: ReturnType<typeof useT<"models">>) {
  return t(`origin.${from?.kind ?? "file"}`, { name: from?.name ?? "", address: from?.address ?? "" });
}

function Abilities({ model }: { model: Model }) {
  const t = useT("models");
  const abilities = [
    model.supports_thinking && { icon: <Brain aria-hidden />, text: t("thinking") },
    model.supports_reasoning_effort && { icon: <Gauge aria-hidden />, text: t("effort") },
    model.supports_vision && { icon: <Eye aria-hidden />, text: t("vision") },
    model.context_window && {
      icon: <ScrollText aria-hidden />,
      text: t("window", { tokens: formatTokens(model.context_window) }),
    },
  ].filter((one) => !!one);
  if (abilities.length === 0) return null;
  return (
    <ul className="flex flex-wrap gap-1.5">
      {abilities.map((one) => (
        <li key={one.text}>
          <Badge variant="secondary" className="font-normal">
            {one.icon}
            {one.text}
          </Badge>
        </li>
      ))}
    </ul>
  );
}

/** Outcome of a test. */
export function TestOutcome({ test }: { test: { data?: Tested; error: Error | null; isPending: boolean } }) {
  const [locale] = useLocale();
  const t = useT("models");
  const { data, error } = test;
  if (test.isPending) return null;
  if (error) {
    const wait = error instanceof ApiError && error.status === 429 ? (error.retryAfter ?? 60) : null;
    return (
      <Outcome tone="text-destructive" icon={<CircleX aria-hidden />}>
        {wait ? t("throttled", { seconds: wait }) : error.message}
      </Outcome>
    );
  }
  if (data?.ok)
    return (
      <Outcome tone="text-success" icon={<CircleCheck aria-hidden />}>
        {t("ok", { time: formatDuration(data.latency_ms, locale) })}
        {data.answer && <span className="text-muted-foreground"> {t("said", { answer: data.answer })}</span>}
      </Outcome>
    );
  return data ? (
    <Outcome tone="text-destructive" icon={<CircleX aria-hidden />}>
      <div className="min-w-0 flex-1">
        {data.kind ? (
          <LateTexts of={serverTexts}>
            <Why kind={data.kind} problem={data.problem} />
          </LateTexts>
        ) : (
          <>
            {t("failed")} <span className="text-foreground">{data.problem}</span>
          </>
        )}
      </div>
    </Outcome>
  ) : null;
}

/** Reason for a failed call, in words of the page; the server's words are its details. */
function Why({ kind, problem }: { kind: NonNullable<Tested["kind"]>; problem: string | null }) {
  const t = useT("server.failure");
  return (
    <>
      {t(`title.${kind}`)}
      <details className="text-muted-foreground">
        <summary className="cursor-pointer">{t("details")}</summary>
        {problem}
      </details>
    </>
  );
}

function Outcome({ tone, icon, children }: { tone: string; icon: ReactNode; children: ReactNode }) {
  return (
    <div
      className={`${tone} flex animate-rise items-start gap-2 text-[13px] leading-relaxed [&_svg]:mt-[3px] [&_svg]:size-4 [&_svg]:shrink-0`}
    >
      {icon}
      <span className="min-w-0 break-words">{children}</span>
    </div>
  );
}
