"use client";
import { useState } from "react";
import { useT } from "@/i18n";
import { Dialog, DialogContent } from "@/ui/dialog";
import { SegmentedControl } from "@/ui/segmented";
import { Textarea } from "@/ui/textarea";
import { toast } from "@/ui/toast";
import { DialogForm, Field } from "../parts/dialog-form";
import { Code } from "../parts";
import { useChange, type Entries } from "./api";
import { draftOf, entryOf, isReady, type Draft } from "./draft";
import { MARK, parseServers, toText, type Entry, type Problem } from "./entry";
import { ServerForm } from "./server-form";
import { TestServer } from "./test-server";

interface ServerDialogProps {
  /** "new", or the one that is changed; null: closed. */
  name: string | null;
  entries: Entries;
  onClose: () => void;
}

export function ServerDialog({ name, entries, onClose }: ServerDialogProps) {
  // Entries that load again must not empty the form.
  return (
    <Dialog open={name !== null} onOpenChange={(open) => !open && onClose()}>
      <DialogContent className="sm:max-w-xl">
        {name !== null && (
          <ServerEditor name={name === "new" ? null : name} entries={entries} onClose={onClose} />
        )}
      </DialogContent>
    </Dialog>
  );
}

const EMPTY: Entry = { type: "stdio" };
const EXAMPLE = `{
  "mcpServers": {
    "files": {
      "command": "npx",
      "args": ["-y", "@modelcontextprotocol/server-filesystem", "/mnt/user-data/workspace"]
    }
  }
}`;

type Outcome =
  { servers: Entries } | { problem: Problem | { code: "taken" | "onlyThis"; name: string } } | null;

function ServerEditor({ name, entries, onClose }: Omit<ServerDialogProps, "name"> & { name: string | null }) {
  const t = useT("mcp");
  const change = useChange();
  const [before] = useState<Entry>(() => (name && entries[name]) || EMPTY);
  const [how, setHow] = useState<"form" | "json">("form");
  const [draft, setDraft] = useState<Draft>(() => draftOf(name ?? "", before));
  const [text, setText] = useState(() => (name ? toText(name, before) : ""));
  const outcome = how === "form" ? ofForm(draft, before) : ofText(text, name, draft.trusted);
  const checked = name ? outcome : withoutTaken(outcome, entries);
  const servers = checked && "servers" in checked ? checked.servers : null;
  const problem = checked && "problem" in checked ? checked.problem : null;
  const [only, ...others] = Object.entries(servers ?? {});

  /** Carries over the text written so far. */
  const switchTo = (next: "form" | "json") => {
    if (next === "json" && how === "form" && isReady(draft))
      setText(toText(draft.name, entryOf(draft, before)));
    if (next === "form" && only && others.length === 0)
      setDraft({ ...draftOf(...only), trusted: draft.trusted });
    setHow(next);
  };
  const save = async () => {
    await change((all) => ({ ...all, ...servers }));
    toast.success(name ? t("saved", { name }) : t("added", { n: others.length + 1 }));
    onClose();
  };
  return (
    <DialogForm
      title={name ? t("editTitle", { name }) : t("addTitle")}
      confirm={name ? t("save") : t("add")}
      ready={servers !== null}
      onSubmit={save}
    >
      <SegmentedControl
        label={t("how")}
        className="self-start"
        value={how}
        onValueChange={switchTo}
        options={[
          { value: "form", label: t("form") },
          { value: "json", label: t(name ? "asJson" : "json") },
        ]}
      />
      {how === "form" ? (
        <ServerForm draft={draft} isNew={name === null} onChange={setDraft} />
      ) : (
        <Field label={t("jsonLabel")} hint={t(name ? "jsonHintEdit" : "jsonHint")}>
          {(given) => (
            <Textarea
              {...given}
              autoFocus
              spellCheck={false}
              autoCapitalize="off"
              placeholder={EXAMPLE}
              className="min-h-52 font-mono text-xs leading-relaxed"
              value={text}
              onChange={(event) => setText(event.target.value)}
            />
          )}
        </Field>
      )}
      {problem && <ProblemText problem={problem} />}
      {JSON.stringify(before).includes(MARK) && (
        <p className="text-xs leading-relaxed text-muted-foreground">
          {t.rich("marks", { code: (inner) => <Code>{inner}</Code> })}
        </p>
      )}
      {only && others.length === 0 && (
        <TestServer key={JSON.stringify(only)} name={only[0]} entry={only[1]} />
      )}
    </DialogForm>
  );
}

function ProblemText({ problem }: { problem: Problem | { code: "taken" | "onlyThis"; name: string } }) {
  const t = useT("mcp.problem");
  const { code, name = "" } = problem;
  const detail = "detail" in problem ? (problem.detail ?? "") : "";
  return (
    <p role="alert" className="text-[13px] leading-relaxed break-words text-destructive">
      {t(code, { name, detail })}
    </p>
  );
}

const ofForm = (draft: Draft, before: Entry): Outcome =>
  isReady(draft) ? { servers: { [draft.name.trim()]: entryOf(draft, before) } } : null;

/** Of an empty text nothing is wrong yet. Trust is the form's alone. */
function ofText(text: string, name: string | null, trusted: boolean): Outcome {
  if (!text.trim()) return null;
  const found = parseServers(text);
  if ("problem" in found || name === null) return found;
  const names = Object.keys(found.servers);
  if (names.length !== 1 || names[0] !== name) return { problem: { code: "onlyThis", name } };
  return { servers: { [name]: { ...found.servers[name], ...(trusted ? { trusted } : {}) } } };
}

function withoutTaken(outcome: Outcome, entries: Entries): Outcome {
  if (!outcome || "problem" in outcome) return outcome;
  const taken = Object.keys(outcome.servers).find((one) => one in entries);
  return taken ? { problem: { code: "taken", name: taken } } : outcome;
}
