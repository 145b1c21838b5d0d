"use client";
import { ShieldQuestion } from "lucide-react";
import { useEffect, useId, useRef, useState, type ReactNode } from "react";
import { LateTexts, useT } from "@/i18n";
import { Button } from "@/ui/button";
import { Spinner } from "@/ui/spinner";
import { Textarea } from "@/ui/textarea";
import { useChat } from "../chat-context";
import { useSession, type Interrupt } from "../thread/session";
import { useAction } from "../use-action";
import { CallCard } from "./call-card";
import { answerOf, approve, type Decision } from "./decisions";
import { Fields } from "./fields";
import { decisionTexts } from "../texts";

/** Everything in the conversation that waits for the person's decision. */
export default function InterruptCards() {
  const { interrupts } = useSession();
  if (!interrupts.length) return null;
  return (
    <LateTexts of={decisionTexts}>
      <div className="py-2">
        <Interrupts interrupts={interrupts} called />
      </div>
    </LateTexts>
  );
}

interface InterruptsProps {
  interrupts: readonly Interrupt[];
  /** They call for the person, who does something else: each takes the focus when it appears. */
  called?: boolean;
}

export function Interrupts({ interrupts, called = false }: InterruptsProps) {
  return (
    <div className="flex flex-col gap-3">
      {interrupts.map((interrupt) => {
        const Kind = interrupt.calls.length ? CallsCard : GeneralCard;
        return <Kind key={interrupt.id + interrupt.problem} interrupt={interrupt} called={called} />;
      })}
    </div>
  );
}

interface KindProps {
  interrupt: Interrupt;
  called: boolean;
}

/** Several calls in one interrupt are answered together; a single one at once. */
function CallsCard({ interrupt, called }: KindProps) {
  const t = useT("decisions");
  const { actions } = useChat();
  const { pending, error, run } = useAction();
  const { calls } = interrupt;
  const headline = useId();
  const [decisions, setDecisions] = useState<(Decision | null)[]>(() => calls.map(() => null));
  const [sent, setSent] = useState(false);
  const answer = answerOf(decisions);
  const open = decisions.filter((one) => one === null).length;
  const busy = pending || sent;

  const send = async (all: readonly (Decision | null)[]) => {
    const value = answerOf(all);
    if (value) setSent(await run(() => actions.respond(interrupt.id, value)));
  };
  const decide = (at: number, decision: Decision | null) => {
    const next = decisions.map((one, i) => (i === at ? decision : one));
    setDecisions(next);
    if (calls.length === 1) void send(next);
  };
  const approveAll = () => {
    const next = decisions.map((one) => one ?? approve);
    setDecisions(next);
    void send(next);
  };
  const canApproveAll = calls.every((call, i) => decisions[i] !== null || call.allowed.includes("approve"));
  return (
    <Card
      {...(calls.length === 1 ? { labelledBy: headline } : { title: t("title", { n: calls.length }) })}
      busy={busy}
      error={error ?? interrupt.problem}
      called={called}
    >
      {calls.map((call, i) => (
        <div key={call.id ?? i} className={i ? "border-t pt-4" : ""}>
          <CallCard
            call={call}
            titleId={calls.length === 1 ? headline : undefined}
            value={interrupt.value}
            decision={decisions[i] ?? null}
            busy={busy}
            onDecide={(made) => decide(i, made)}
          />
        </div>
      ))}
      {(calls.length > 1 || error) && (
        <div className="flex flex-wrap items-center gap-2 border-t pt-4">
          <Button size="sm" disabled={!answer || busy} onClick={() => send(decisions)}>
            {t("submit", { n: calls.length })}
          </Button>
          {calls.length > 1 && open > 0 && canApproveAll && (
            <Button variant="outline" size="sm" disabled={busy} onClick={approveAll}>
              {t("approveAll")}
            </Button>
          )}
          {open > 0 && <span className="text-xs text-muted-foreground">{t("missing", { n: open })}</span>}
        </div>
      )}
    </Card>
  );
}

/** An interrupt of another kind: what it says, and a free answer. */
function GeneralCard({ interrupt, called }: KindProps) {
  const t = useT("decisions");
  const { actions } = useChat();
  const { pending, error, run } = useAction();
  const [sent, setSent] = useState(false);
  const [text, setText] = useState("");
  const busy = pending || sent;
  const { value } = interrupt;
  const send = async () => setSent(await run(() => actions.respond(interrupt.id, text.trim())));
  return (
    <Card title={t("general")} busy={busy} error={error} called={called}>
      {typeof value === "string" ? (
        <p className="text-[15px] leading-relaxed break-words whitespace-pre-wrap">{value}</p>
      ) : (
        <Fields args={typeof value === "object" && value ? (value as Record<string, unknown>) : { value }} />
      )}
      <Textarea
        aria-label={t("sendAnswer")}
        value={text}
        disabled={busy}
        onChange={(event) => setText(event.target.value)}
      />
      <div>
        <Button size="sm" disabled={busy || !text.trim()} onClick={send}>
          {t("sendAnswer")}
        </Button>
      </div>
    </Card>
  );
}

interface CardProps {
  title?: string;
  /** Id of what names it in place of a title. */
  labelledBy?: string;
  busy: boolean;
  error: string | null;
  called: boolean;
  children: ReactNode;
}

/** Takes the focus when it appears and is `called`, unless the person is writing something. */
function Card({ title, labelledBy, busy, error, called, children }: CardProps) {
  const t = useT("decisions");
  const id = useId();
  const box = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const at = document.activeElement;
    const isWriting =
      at instanceof HTMLElement && (at.isContentEditable || ("value" in at && at.value !== ""));
    if (called && !isWriting) box.current?.focus({ preventScroll: true });
  }, [called]);
  return (
    <div
      ref={box}
      {...(called ? { role: "alertdialog", "aria-modal": false } : { role: "group" })}
      aria-labelledby={labelledBy ?? id}
      aria-busy={busy}
      tabIndex={-1}
      className="flex animate-rise flex-col gap-4 rounded-2xl border border-warning/40 bg-card p-4 outline-none focus-visible:ring-2 focus-visible:ring-ring/40 motion-reduce:animate-none"
    >
      {title && (
        <p id={id} className="flex items-center gap-2 text-sm font-medium">
          <ShieldQuestion aria-hidden className="size-4 shrink-0 text-warning" />
          {title}
        </p>
      )}
      {children}
      {busy && (
        <p role="status" className="flex items-center gap-2 text-xs text-muted-foreground">
          <Spinner className="size-3.5" />
          {t("deciding")}
        </p>
      )}
      {error && (
        <p role="alert" className="text-xs text-destructive">
          {t("failed", { message: error })}
        </p>
      )}
    </div>
  );
}
