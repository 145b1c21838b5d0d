"use client";
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { Brain, Download, Ellipsis, PowerOff, Search, Trash2, Upload } from "lucide-react";
import { useSearchParams } from "next/navigation";
import { useRef, useState } from "react";
import { useT } from "@/i18n";
import { downloadText } from "@/lib/export";
import { keys } from "@/lib/keys";
import { Button } from "@/ui/button";
import { ConfirmDialog } from "@/ui/dialog";
import {
  DropdownMenu,
  DropdownMenuContent,
  DropdownMenuItem,
  DropdownMenuSeparator,
  DropdownMenuTrigger,
} from "@/ui/dropdown-menu";
import { EmptyState } from "@/ui/empty-state";
import { IconButton } from "@/ui/icon-button";
import { toast } from "@/ui/toast";
import { Code, Group, Note, Panel, SearchField, Waiting } from "../parts";
import * as api from "./api";
import { FactDialog, type Written } from "./fact-dialog";
import { FactRow } from "./fact-row";
import { grouped, isKnown, summariesOf } from "./facts";
import { AgentSelect } from "./agent-select";

export default function MemorySection() {
  const t = useT("memory");
  const asked = useSearchParams().get("agent");
  const [agent, setAgent] = useState(asked);
  const { data: on } = useQuery({ queryKey: keys.memoryOn, queryFn: api.isRemembering });
  return (
    <>
      {on === false && (
        <Note tone="warning" icon={<PowerOff aria-hidden />}>
          {t.rich("off", { code: (text) => <Code>{text}</Code> })}
        </Note>
      )}
      <AgentSelect agent={agent} onAgent={setAgent} />
      <MemoryOf key={agent} agent={agent} />
    </>
  );
}

function MemoryOf({ agent }: { agent: string | null }) {
  const t = useT("memory");
  const queries = useQueryClient();
  const { data, error, refetch } = useQuery({
    queryKey: keys.memory(agent),
    queryFn: () => api.memory(agent),
  });
  const [query, setQuery] = useState("");
  const [editing, setEditing] = useState<api.Fact | "new" | null>(null);
  const [asked, setAsked] = useState<{ document: unknown } | "clear" | null>(null);
  const file = useRef<HTMLInputElement>(null);

  /** Each change answers with all that holds then. */
  const change = async (work: Promise<api.Memory>) => queries.setQueryData(keys.memory(agent), await work);
  const attempt = async (work: Promise<api.Memory>) => {
    try {
      await change(work);
      return true;
    } catch (problem) {
      toast.error((problem as Error).message);
      return false;
    }
  };
  const save = async (written: Written) => {
    if (editing === "new") await change(api.addFact(agent, written));
    else if (editing) await change(api.changeFact(agent, editing.id, written));
    setEditing(null);
  };
  const end = async (fact: api.Fact, how: "forget" | "undo") => {
    const done = await attempt((how === "forget" ? api.forgetFact : api.undoFact)(agent, fact.id));
    if (!done) return;
    toast.success(t(how === "forget" ? "forgotten" : "undone"), {
      description: fact.content,
      action: { label: t("restore"), run: () => void attempt(api.undoFact(agent, fact.id)) },
    });
  };
  const confirm = async (fact: api.Fact) => {
    if (await attempt(api.confirmFact(agent, fact.id)))
      toast.success(t("confirmed"), { description: fact.content });
  };
  const read = async (picked: File | undefined) => {
    if (!picked) return;
    try {
      setAsked({ document: JSON.parse(await picked.text()) });
    } catch {
      toast.error(t("notJson", { name: picked.name }));
    }
  };
  const replace = async () => {
    const work = asked === "clear" ? api.forgetAll(agent) : api.importMemory(agent, asked?.document);
    if (!(await attempt(work))) throw new Error();
    toast.success(t(asked === "clear" ? "cleared" : "imported"));
  };
  const keep = () =>
    downloadText(
      `deerflow-memory-${new Date().toISOString().slice(0, 10)}.json`,
      JSON.stringify(data, null, 2),
      "application/json",
    );

  if (!data) return <Waiting error={error} retry={refetch} />;
  const facts = data.facts ?? [];
  const { unconfirmed, groups } = grouped(facts, query);
  const add = (
    <Button size="sm" onClick={() => setEditing("new")}>
      {t("add")}
    </Button>
  );
  return (
    <>
      <div className="flex items-center gap-2">
        <SearchField label={t("search")} value={query} onChange={setQuery} />
        {add}
        <DropdownMenu>
          <DropdownMenuTrigger asChild>
            <IconButton label={t("all")} variant="outline">
              <Ellipsis aria-hidden />
            </IconButton>
          </DropdownMenuTrigger>
          <DropdownMenuContent align="end">
            <DropdownMenuItem onSelect={keep}>
              <Download aria-hidden />
              {t("export")}
            </DropdownMenuItem>
            <DropdownMenuItem onSelect={() => file.current?.click()}>
              <Upload aria-hidden />
              {t("import")}
            </DropdownMenuItem>
            <DropdownMenuSeparator />
            <DropdownMenuItem destructive onSelect={() => setAsked("clear")}>
              <Trash2 aria-hidden />
              {t("clear")}
            </DropdownMenuItem>
          </DropdownMenuContent>
        </DropdownMenu>
      </div>
      {unconfirmed.length > 0 && (
        <Group title={t("unconfirmed")}>
          <p className="text-[13px] leading-relaxed text-muted-foreground">{t("unconfirmedText")}</p>
          <Panel role="list">
            {unconfirmed.map((fact) => (
              <FactRow
                key={fact.id}
                fact={fact}
                onConfirm={() => void confirm(fact)}
                onEdit={() => setEditing(fact)}
                onUndo={() => void end(fact, "undo")}
                onForget={() => void end(fact, "forget")}
              />
            ))}
          </Panel>
        </Group>
      )}
      {groups.length === 0 && unconfirmed.length === 0 && (
        <Panel>
          <EmptyState
            icon={query ? <Search /> : <Brain />}
            title={t(query ? "notFound" : "none")}
            text={query ? undefined : t("noneText")}
          />
        </Panel>
      )}
      {groups.map(([category, some]) => (
        <Group key={category} title={isKnown(category) ? t(`category.${category}`) : category}>
          <Panel role="list">
            {some.map((fact) => (
              <FactRow
                key={fact.id}
                fact={fact}
                onEdit={() => setEditing(fact)}
                onUndo={() => void end(fact, "undo")}
                onForget={() => void end(fact, "forget")}
              />
            ))}
          </Panel>
        </Group>
      ))}
      {!query && <Summaries memory={data} />}
      <FactDialog fact={editing} onClose={() => setEditing(null)} onSave={save} />
      <ConfirmDialog
        open={asked !== null}
        onOpenChange={(open) => !open && setAsked(null)}
        title={t(asked === "clear" ? "clearTitle" : "importTitle")}
        text={t(asked === "clear" ? "clearText" : "importText", { n: facts.length })}
        confirm={t(asked === "clear" ? "clear" : "importConfirm")}
        destructive
        onConfirm={replace}
      />
      <input
        ref={file}
        type="file"
        accept="application/json,.json"
        hidden
        aria-label={t("import")}
        onChange={(event) => {
          void read(event.target.files?.[0]);
          event.target.value = "";
        }}
      />
    </>
  );
}

/** Summaries about the person; the server rewrites them from time to time, so they are read-only here. */
function Summaries({ memory }: { memory: api.Memory }) {
  const t = useT("memory");
  const summaries = summariesOf(memory);
  if (summaries.length === 0) return null;
  return (
    <Group title={t("summaries")}>
      <Panel>
        {summaries.map(({ name, text }) => (
          <div key={name} className="px-4 py-3 sm:px-5">
            <h3 className="text-[13px] font-medium">{t(`summary.${name}`)}</h3>
            <p className="mt-0.5 text-[13px] leading-relaxed whitespace-pre-wrap text-muted-foreground">
              {text}
            </p>
          </div>
        ))}
      </Panel>
    </Group>
  );
}
