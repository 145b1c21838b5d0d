"use client";
import { Check, MessageSquare, Pencil, Undo2, X } from "lucide-react";
import { useId, useMemo, useState } from "react";
import { useT } from "@/i18n";
import { Badge } from "@/ui/badge";
import { Button } from "@/ui/button";
import { Textarea } from "@/ui/textarea";
import { marked } from "@/lib/marks";
import { describe } from "../tool-card/describe";
import { aboutOf, headlineOf, isNetwork, opensDestination, type About, type Headline } from "./about";
import { ArgumentsEditor } from "./arguments-editor";
import { CallView } from "./call-view";
import { Changed } from "./changed";
import { LongText, Marked } from "./long-text";
import { PatternForm } from "./pattern-form";
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
  type WaitingCall,
} from "./decisions";

interface CallCardProps {
  call: WaitingCall;
  /** Its headline is that of the whole card. */
  titleId?: string;
  /** The value of its interrupt. */
  value: unknown;
  decision: Decision | null;
  busy: boolean;
  onDecide: (decision: Decision | null) => void;
}

type Mode = Exclude<Choice, "approve"> | "pattern";

/** One call that waits, and what can be decided about it. */
export function CallCard({ call, titleId, value, decision, busy, onDecide }: CallCardProps) {
  const id = useId();
  const [mode, setMode] = useState<Mode | null>(null);
  const about = useMemo(() => aboutOf(value), [value]);
  const { own, rule } = reasonsOf(call, about.cosmetic);
  const t = useT("decisions");
  const isBare = call.name === "spend_more" || isNetwork(call);
  const isMarked = JSON.stringify(call.args) !== marked(JSON.stringify(call.args));
  const decide = (made: Decision) => {
    setMode(null);
    onDecide(made);
  };
  return (
    <div className="flex flex-col gap-3">
      <Title
        id={titleId}
        call={call}
        about={about}
        rule={call.reason === "deerflow.uploads" ? t("uploads") : rule}
      />
      {about.changed && <Changed changed={about.changed} />}
      {own && <Words text={own} />}
      {mode === "edit" && (
        <ArgumentsEditor
          id={id}
          args={call.args}
          disabled={busy}
          onDone={(args) => decide(edit(call, args))}
          onCancel={() => setMode(null)}
        />
      )}
      {!isBare && (mode !== "edit" || isMarked) && <CallView call={call} said={own !== ""} />}
      {call.sources.length > 0 && <Sources sources={call.sources} />}
      {mode === "pattern" && (
        <PatternForm
          call={call}
          cosmetic={about.cosmetic}
          busy={busy}
          onCancel={() => setMode(null)}
          onDone={decide}
        />
      )}
      {(mode === "reject" || mode === "respond") && (
        <Note
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
          <Buttons call={call} about={about} busy={busy} onDecide={onDecide} onMode={setMode} />
        ))}
    </div>
  );
}

interface TitleProps {
  id?: string;
  call: WaitingCall;
  about: About;
  rule: string;
}

/** Words for a limit of spending that is reached; empty if its facts are not there. */
function moneyText(t: ReturnType<typeof useT<"decisions">>, { limit, unit, setting }: WaitingCall["args"]) {
  if (typeof limit !== "number" || typeof unit !== "string") return "";
  return t("spend", { limit, unit, scope: String(setting).replace("spending.", "") });
}

/** Our words on what the call does, and who asks for it. */
function Title({ id, call, about, rule }: TitleProps) {
  const t = useT("decisions");
  const own = useId();
  const { icon: Icon } = describe({
    ...call,
    id: own,
    status: "waiting",
    result: "",
    images: [],
    output: "",
  });
  const isMoney = call.name === "spend_more";
  const { asker } = about;
  const destination = opensDestination(about);
  return (
    <div className="flex items-start gap-2">
      <Icon aria-hidden className="mt-0.5 size-4 shrink-0 text-warning" />
      <div className="flex min-w-0 flex-col gap-0.5 [overflow-wrap:anywhere]">
        <p id={id} className="text-[15px] leading-5 font-medium">
          {isMoney ? moneyText(t, call.args) || rule : <HeadlineText headline={headlineOf(call, about)} />}
        </p>
        {!isMoney && (
          <p className="text-xs leading-5 text-muted-foreground">
            {asker && <Asker {...asker} />}
            {asker && !isNetwork(call) && " · "}
            {!isNetwork(call) && (
              <span className="font-mono">
                <Marked text={call.name} />
              </span>
            )}
          </p>
        )}
        {rule && !isMoney && (
          <p className="text-[13px] text-muted-foreground">
            <Marked text={rule} />
          </p>
        )}
        {destination && (
          <p className="text-[13px] text-muted-foreground">
            {isNetwork(call)
              ? t("opensHost", { host: marked(destination) })
              : t("opens", { destination: destinationName(t, marked(destination)) })}
          </p>
        )}
      </div>
    </div>
  );
}

type Texts = ReturnType<typeof useT<"decisions">>;

const destinationName = (t: Texts, destination: string) =>
  destination === "search" || destination === "acp" ? t(`destination.${destination}`) : destination;

function HeadlineText({ headline: { what, does, name, place, destination } }: { headline: Headline }) {
  const t = useT("decisions");
  const text = t(`headline.${what}`, { name, place });
  if (does === "nothing") return text;
  return t(`does.${does}`, { what: text, destination: destinationName(t, destination) });
}

function Asker({ agent, subagent }: NonNullable<About["asker"]>) {
  const t = useT("decisions.asker");
  if (subagent) return t("subagent", { name: marked(subagent) });
  return agent ? t("agent", { name: marked(agent) }) : t("lead");
}

/** The agent's own words, which may be wrong or not its own. */
function Words({ text }: { text: string }) {
  const t = useT("decisions");
  return (
    <figure className="border-l-2 pl-3">
      <figcaption className="text-xs text-muted-foreground">{t("says")}</figcaption>
      <LongText text={text} className="px-0 py-0.5 [&>pre]:font-sans [&>pre]:text-[13px]" />
    </figure>
  );
}

interface ButtonsProps {
  call: WaitingCall;
  about: About;
  busy: boolean;
  onDecide: (decision: Decision) => void;
  onMode: (mode: Mode) => void;
}

function Buttons({ call, about, busy, onDecide, onMode }: ButtonsProps) {
  const { allowed } = call;
  const grants = isNetwork(call) ? [] : call.grants;
  const t = useT("decisions");
  return (
    <div className="flex flex-wrap gap-2">
      {allowed.includes("approve") && (
        <Button size="sm" disabled={busy} onClick={() => onDecide(approve)}>
          <Check aria-hidden />
          {t("approve")}
        </Button>
      )}
      {allowed.includes("reject") && (
        <Button variant="outline" size="sm" disabled={busy} onClick={() => onMode("reject")}>
          <X aria-hidden />
          {t("reject")}
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
      {grants.length > 0 && (
        <span className="flex w-full flex-wrap items-center gap-x-1 text-xs text-muted-foreground">
          {t("grants")}
          {grants.map((one) => (
            <Button key={one} variant="ghost" size="xs" disabled={busy} onClick={() => onDecide(grant(one))}>
              {t(`grant.${one}`)}
            </Button>
          ))}
          {Object.keys(patternOf(call, about.cosmetic)).length > 0 && (
            <Button variant="ghost" size="xs" disabled={busy} onClick={() => onMode("pattern")}>
              {t("pattern")}
            </Button>
          )}
        </span>
      )}
    </div>
  );
}

interface NoteProps {
  mode: "reject" | "respond";
  busy: boolean;
  onDone: (text: string) => void;
  onCancel: () => void;
}

/** Reason of a rejection, or the answer in place of the tool's. */
function Note({ mode, busy, onDone, onCancel }: NoteProps) {
  const t = useT("decisions");
  const common = useT("common");
  const [text, setText] = useState("");
  const isNote = mode === "reject";
  return (
    <div className="flex flex-col gap-2">
      {!isNote && <p className="text-[13px] text-muted-foreground">{t("respondHint")}</p>}
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
