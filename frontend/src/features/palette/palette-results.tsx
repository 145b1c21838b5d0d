"use client";
import { Command } from "cmdk";
import { Cpu, MessageSquare, TextSearch, type LucideIcon } from "lucide-react";
import type { ReactNode } from "react";
import { useRunChoice } from "@/lib/run-settings";
import { Marked, useThreads, useThreadSearch } from "@/features/threads";
import { useT } from "@/i18n";
import { useDebounced } from "@/lib/debounced";
import { shortcutLabel } from "@/lib/shortcuts";
import { useThreadId } from "@/lib/route";
import { ErrorState } from "@/ui/error-state";
import { Spinner } from "@/ui/spinner";
import { matchesAll } from "./match";
import { useCommands, useGoTo, type PaletteCommand } from "./use-commands";

const RECENT = 5;
const FOUND = 8;
const DELAY = 150;

interface PaletteResultsProps {
  text: string;
  onDone: () => void;
  openHelp: () => void;
}

export function PaletteResults({ text, onDone, openHelp }: PaletteResultsProps) {
  const t = useT("palette");
  const { actions, settings } = useCommands(openHelp);
  const choice = useRunChoice(useThreadId());
  const fitting = (one: PaletteCommand) => matchesAll(text, one.label, one.words ?? "", one.id);
  const run = (work: () => void) => () => {
    onDone();
    work();
  };
  const models = text
    ? choice.models.filter((one) => !one.problem && matchesAll(text, one.display_name, one.name, "model"))
    : [];
  const commands = (list: PaletteCommand[]) =>
    list.map((one) => (
      <Item key={one.id} id={one.id} icon={one.icon} combo={one.combo} onSelect={run(one.run)}>
        {one.label}
      </Item>
    ));
  const some = { actions: actions.filter(fitting), settings: text ? settings.filter(fitting) : [] };
  const threads = <Threads text={text} onDone={onDone} />;
  return (
    <>
      {!text && threads}
      {some.actions.length > 0 && <Group title={t("actions")}>{commands(some.actions)}</Group>}
      {text && threads}
      {some.settings.length > 0 && <Group title={t("settings")}>{commands(some.settings)}</Group>}
      {models.length > 0 && (
        <Group title={t("models")}>
          {models.map((one) => (
            <Item
              key={one.name}
              id={`model-${one.name}`}
              icon={Cpu}
              onSelect={run(() => choice.change({ modelName: one.name }))}
            >
              {one.display_name}
            </Item>
          ))}
        </Group>
      )}
    </>
  );
}

/** The newest ones; with a text what the server finds for it. */
function Threads({ text, onDone }: { text: string; onDone: () => void }) {
  const t = useT("palette");
  const common = useT("common");
  const goTo = useGoTo();
  const settled = useDebounced(text, DELAY);
  const { pinned, others } = useThreads();
  const search = useThreadSearch(settled, FOUND);
  const open = (id: string) => () => {
    onDone();
    goTo(id);
  };
  if (!text) {
    const recent = [...pinned, ...others]
      .sort((a, b) => b.updatedAt.localeCompare(a.updatedAt))
      .slice(0, RECENT);
    if (!recent.length) return null;
    return (
      <Group title={t("recent")}>
        {recent.map((one) => (
          <Item key={one.id} id={`recent-${one.id}`} icon={MessageSquare} onSelect={open(one.id)}>
            {one.title ?? common("untitled")}
          </Item>
        ))}
      </Group>
    );
  }
  if (search.error) return <ErrorState compact error={search.error} retry={() => void search.refetch()} />;
  const { titles = [], messages = [] } = search.data ?? {};
  const searching = search.isFetching || settled !== text;
  return (
    <>
      {searching ? (
        <Command.Loading>
          <span className="flex items-center gap-2 px-3 py-2 text-sm text-muted-foreground">
            <Spinner /> {t("searching")}
          </span>
        </Command.Loading>
      ) : (
        <Command.Empty className="py-10 text-center text-sm text-muted-foreground">
          {t("nothing")}
        </Command.Empty>
      )}
      {titles.length > 0 && (
        <Group title={t("chats")}>
          {titles.map((hit) => (
            <Item
              key={hit.thread_id}
              id={`thread-${hit.thread_id}`}
              icon={MessageSquare}
              onSelect={open(hit.thread_id)}
            >
              <Marked text={hit.snippet} marks={hit.marks} />
            </Item>
          ))}
        </Group>
      )}
      {messages.length > 0 && (
        <Group title={t("messages")}>
          {messages.map((hit) => (
            <Item
              key={`${hit.thread_id}/${hit.message_id}`}
              id={`hit-${hit.thread_id}-${hit.message_id}`}
              icon={TextSearch}
              onSelect={open(hit.thread_id)}
              beside={hit.title ?? common("untitled")}
            >
              <Marked text={hit.snippet} marks={hit.marks} />
            </Item>
          ))}
        </Group>
      )}
    </>
  );
}

function Group({ title, children }: { title: string; children: ReactNode }) {
  return (
    <Command.Group
      heading={title}
      className="pb-1.5 [&_[cmdk-group-heading]]:px-3 [&_[cmdk-group-heading]]:py-1.5 [&_[cmdk-group-heading]]:text-xs [&_[cmdk-group-heading]]:font-medium [&_[cmdk-group-heading]]:text-muted-foreground"
    >
      {children}
    </Command.Group>
  );
}

interface ItemProps {
  id: string;
  icon: LucideIcon;
  combo?: string;
  beside?: string;
  onSelect: () => void;
  children: ReactNode;
}

function Item({ id, icon: Icon, combo, beside, onSelect, children }: ItemProps) {
  return (
    <Command.Item
      value={id}
      onSelect={onSelect}
      className="flex min-h-9 cursor-default items-center gap-3 rounded-lg px-3 py-1.5 text-sm outline-none select-none data-[selected=true]:bg-accent data-[selected=true]:text-accent-foreground pointer-coarse:min-h-11"
    >
      <Icon aria-hidden className="size-4 shrink-0 text-muted-foreground" />
      <span className="min-w-0 flex-1 truncate">{children}</span>
      {beside && <span className="max-w-40 shrink-0 truncate text-xs text-muted-foreground">{beside}</span>}
      {combo && (
        <span className="shrink-0 text-xs tracking-wide text-muted-foreground">{shortcutLabel(combo)}</span>
      )}
    </Command.Item>
  );
}
