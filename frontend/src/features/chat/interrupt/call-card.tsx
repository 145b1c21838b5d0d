"use client";
import { Check, MessageSquare, Pencil, Undo2, X } from "lucide-react";
import { useId, useState } from "react";
import { useT } from "@/i18n";
import { Badge } from "@/ui/badge";
import { Button } from "@/ui/button";
import { Input } from "@/ui/input";
import { Textarea } from "@/ui/textarea";
import { describe } from "../tool-card/describe";
import { ArgumentsEditor } from "./arguments-editor";
import { CallView } from "./call-view";
import { Sources } from "./sources";
import {
  approve,
  edit,
  grant,
  patternOf,
  reasonsOf,
  reject,
  respond,
  type Choice,
  type Decision,
  type Grant,
  type WaitingCall,
} from "./decisions";

interface CallCardProps {
  call: WaitingCall;
  decision: Decision | null;
  busy: boolean;
  onDecide: (decision: Decision | null) => void;
}

type Mode = Exclude<Choice, "approve"> | "pattern";

/** One call that waits, and what can be decided about it. */
export function CallCard({ call, decision, busy, onDecide }: CallCardProps) {
  const t = useT("chat");
  const id = useId();
  const [mode, setMode] = useState<Mode | null>(null);
  const {
    icon: Icon,
    deed,
    subject,
  } = describe({ ...call, id, status: "waiting", result: "", images: [], output: "" });
  const { own, rule } = reasonsOf(call);
  const isMoney = call.name === "spend_more";
  const decide = (made: Decision) => {
    setMode(null);
    onDecide(made);
  };
  return (
    <div className="flex flex-col gap-3">
      <div className="flex items-start gap-2">
        <Icon aria-hidden className="mt-0.5 size-4 shrink-0 text-muted-foreground" />
        <p className="min-w-0 text-sm leading-5 break-words">
          {own || (isMoney ? rule : t(`doing.${deed}`, { name: subject }))}
          {!isMoney && <span className="ml-2 font-mono text-xs text-muted-foreground">{call.name}</span>}
          {rule && !isMoney && <span className="block text-[13px] text-muted-foreground">{rule}</span>}
        </p>
      </div>
      {call.sources.length > 0 && <Sources sources={call.sources} />}
      {mode === "edit" ? (
        <ArgumentsEditor
          id={id}
          args={call.args}
          disabled={busy}
          onDone={(args) => decide(edit(call, args))}
          onCancel={() => setMode(null)}
        />
      ) : (
        !isMoney && <CallView call={call} />
      )}
      {mode === "pattern" && (
        <Pattern call={call} busy={busy} onCancel={() => setMode(null)} onDone={decide} />
      )}
      {(mode === "reject" || mode === "respond") && (
        <Words
          mode={mode}
          busy={busy}
          onCancel={() => setMode(null)}
          onDone={(text) => decide(mode === "reject" ? reject(text) : respond(text))}
        />
      )}
      {mode === null &&
        (decision ? (
          <Decided decision={decision} busy={busy} onUndo={() => onDecide(null)} />
        ) : (
          <Buttons call={call} busy={busy} onDecide={onDecide} onMode={setMode} />
        ))}
    </div>
  );
}

interface ButtonsProps {
  call: WaitingCall;
  busy: boolean;
  onDecide: (decision: Decision) => void;
  onMode: (mode: Mode) => void;
}

function Buttons({ call, busy, onDecide, onMode }: ButtonsProps) {
  const { allowed, grants } = call;
  const t = useT("decisions");
  return (
    <div className="flex flex-wrap gap-2">
      {allowed.includes("approve") && (
        <Button size="sm" disabled={busy} onClick={() => onDecide(approve)}>
          <Check aria-hidden />
          {t("approve")}
        </Button>
      )}
      {allowed.includes("edit") && (
        <Button variant="outline" size="sm" disabled={busy} onClick={() => onMode("edit")}>
          <Pencil aria-hidden />
          {t("edit")}
        </Button>
      )}
      {allowed.includes("respond") && (
        <Button variant="outline" size="sm" disabled={busy} onClick={() => onMode("respond")}>
          <MessageSquare aria-hidden />
          {t("respond")}
        </Button>
      )}
      {allowed.includes("reject") && (
        <Button variant="outline" size="sm" disabled={busy} onClick={() => onMode("reject")}>
          <X aria-hidden />
          {t("reject")}
        </Button>
      )}
      {grants.length > 0 && (
        <span className="flex w-full flex-wrap items-center gap-x-1 text-xs text-muted-foreground">
          {t("grants")}
          {grants.map((one) => (
            <Button key={one} variant="ghost" size="xs" disabled={busy} onClick={() => onDecide(grant(one))}>
              {t(`grant.${one}`)}
            </Button>
          ))}
          {Object.keys(patternOf(call)).length > 0 && (
            <Button variant="ghost" size="xs" disabled={busy} onClick={() => onMode("pattern")}>
              {t("pattern")}
            </Button>
          )}
        </span>
      )}
    </div>
  );
}

interface PatternProps {
  call: WaitingCall;
  busy: boolean;
  onDone: (decision: Decision) => void;
  onCancel: () => void;
}

/** Which calls need no decision any more. */
function Pattern({ call, busy, onDone, onCancel }: PatternProps) {
  const t = useT("decisions");
  const common = useT("common");
  const id = useId();
  const [pattern, setPattern] = useState(() => patternOf(call));
  const given = Object.fromEntries(Object.entries(pattern).filter(([, text]) => text.trim()));
  const done = (one: Grant) => onDone(grant(one, given));
  return (
    <div className="flex flex-col gap-2">
      <p className="text-[13px] text-muted-foreground">{t("patternHint")}</p>
      {Object.entries(pattern).map(([name, text]) => (
        <label
          key={name}
          htmlFor={`${id}-${name}`}
          className="flex flex-col gap-1 text-xs text-muted-foreground"
        >
          {name}
          <Input
            id={`${id}-${name}`}
            className="font-mono text-foreground"
            value={text}
            disabled={busy}
            onChange={(event) => setPattern({ ...pattern, [name]: event.target.value })}
          />
        </label>
      ))}
      <div className="flex flex-wrap gap-2">
        {call.grants.map((one) => (
          <Button key={one} size="sm" disabled={busy || !Object.keys(given).length} onClick={() => done(one)}>
            {t(`grant.${one}`)}
          </Button>
        ))}
        <Button variant="ghost" size="sm" disabled={busy} onClick={onCancel}>
          {common("cancel")}
        </Button>
      </div>
    </div>
  );
}

interface WordsProps {
  mode: "reject" | "respond";
  busy: boolean;
  onDone: (text: string) => void;
  onCancel: () => void;
}

/** Why not, or the answer in place of the tool's. */
function Words({ mode, busy, onDone, onCancel }: WordsProps) {
  const t = useT("decisions");
  const common = useT("common");
  const [text, setText] = useState("");
  const isNote = mode === "reject";
  return (
    <div className="flex flex-col gap-2">
      <Textarea
        autoFocus
        aria-label={t(isNote ? "noteLabel" : "answerLabel")}
        placeholder={t(isNote ? "note" : "answerLabel")}
        value={text}
        disabled={busy}
        onChange={(event) => setText(event.target.value)}
      />
      <div className="flex flex-wrap gap-2">
        <Button
          size="sm"
          variant={isNote ? "destructive" : "default"}
          disabled={busy || (!isNote && !text.trim())}
          onClick={() => onDone(text)}
        >
          {t(isNote ? "sendNote" : "sendAnswer")}
        </Button>
        <Button variant="ghost" size="sm" disabled={busy} onClick={onCancel}>
          {common("cancel")}
        </Button>
      </div>
    </div>
  );
}

const BADGES = {
  approve: ["success", "approved"],
  edit: ["default", "edited"],
  reject: ["destructive", "rejected"],
  respond: ["default", "responded"],
} as const;

function Decided({ decision, busy, onUndo }: { decision: Decision; busy: boolean; onUndo: () => void }) {
  const t = useT("decisions");
  const [variant, text] = BADGES[decision.type];
  return (
    <div className="flex items-center gap-2">
      <Badge variant={variant}>{t(text)}</Badge>
      {!busy && (
        <Button variant="ghost" size="xs" className="text-muted-foreground" onClick={onUndo}>
          <Undo2 aria-hidden />
          {t("undo")}
        </Button>
      )}
    </div>
  );
}
