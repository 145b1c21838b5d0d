"use client";
import { Command } from "cmdk";
import { Cpu, MessageSquare, Pencil, TextSearch, type LucideIcon } from "lucide-react";
import type { ReactNode } from "react";
import { useRunChoice } from "@/lib/run-settings";
import { Marked, useThreadActions, useThreads, useThreadSearch } from "@/features/threads";
import { useT } from "@/i18n";
import { useDebounced } from "@/lib/debounced";
import { shortcutLabel } from "@/lib/shortcuts";
import { useThreadId } from "@/lib/route";
import { ErrorState } from "@/ui/error-state";
import { Spinner } from "@/ui/spinner";
import { isExactly, matchesAll, ranked } from "./match";
import { useCommands, useGoTo, type PaletteCommand } from "./use-commands";

const RECENT = 5;
const FOUND = 8;
const DELAY = 150;

interface PaletteResultsProps {
  text: string;
  onDone: () => void;
  /** The open chat, which has this title, is to be renamed. */
  onRename: (title: string) => void;
  openHelp: () => void;
}

/** Exact matches come first, then commands for the open chat, other commands and settings, then chats. */
export function PaletteResults({ text, onDone, onRename, openHelp }: PaletteResultsProps) {
  const t = useT("palette");
  const threadId = useThreadId();
  const { pinned, others } = useThreads();
  const all = [...pinned, ...others];
  const title = all.find(({ id }) => id === threadId)?.title ?? "";
  const { chat, actions, settings } = useCommands(openHelp, () => onRename(title));
  const choice = useRunChoice(threadId);
  const goTo = useGoTo();
  const run =
    ({ id, run }: PaletteCommand) =>
    () => {
      if (id !== "rename") onDone();
      run();
    };
  const models: PaletteCommand[] = choice.models
    .filter((one) => !one.problem)
    .map((one) => ({
      id: `model-${one.name}`,
      label: one.display_name,
      icon: Cpu,
      words: `${one.name} model`,
      run: () => choice.change({ modelName: one.name }),
    }));
  const named: PaletteCommand[] = all
    .filter((one) => isExactly(text, one.title ?? ""))
    .slice(0, FOUND)
    .map((one) => ({
      id: `named-${one.id}`,
      label: one.title!,
      icon: MessageSquare,
      run: () => goTo(one.id),
    }));
  const fitting = (list: PaletteCommand[]) =>
    ranked(
      text,
      list.filter((one) => matchesAll(text, one.label, one.words ?? "", one.id)),
    );
  const isBest = (one: PaletteCommand) => isExactly(text, one.label);
  const best = text ? [...[...chat, ...actions, ...settings, ...models].filter(isBest), ...named] : [];
  const rest = (list: PaletteCommand[]) => (text ? fitting(list).filter((one) => !isBest(one)) : list);
  const groups: [string, PaletteCommand[]][] = [
    [t("best"), best],
    [t("thisChat"), rest(chat)],
    [t("actions"), rest(actions)],
    [t("settings"), text ? rest(settings) : []],
    [t("models"), text ? rest(models) : []],
  ];
  const threads = <Threads text={text} onDone={onDone} />;
  return (
    <>
      {!text && threads}
      {groups.map(
        ([title, list]) =>
          list.length > 0 && (
            <Group key={title} title={title}>
              {list.map((one) => (
                <Item key={one.id} id={one.id} icon={one.icon} combo={one.combo} onSelect={run(one)}>
                  {one.label}
                </Item>
              ))}
            </Group>
          ),
      )}
      {text && threads}
    </>
  );
}

/** A new title for the open chat. */
export function Rename({ title, onDone }: { title: string; onDone: () => void }) {
  const t = useT("palette");
  const threadId = useThreadId();
  const actions = useThreadActions();
  if (!title || threadId === null) return null;
  const rename = () => {
    onDone();
    void actions.rename(threadId, title).catch(() => {});
  };
  return (
    <Item id="rename-to" icon={Pencil} onSelect={rename}>
      {t("renameTo", { title })}
    </Item>
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
  const { titles: all = [], messages = [] } = search.data ?? {};
  const titles = all.filter((hit) => !isExactly(text, hit.snippet)); // they stand first
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
