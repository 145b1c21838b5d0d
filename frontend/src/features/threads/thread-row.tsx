"use client";
import { MoreHorizontal, Pin, Square, SquareCheck } from "lucide-react";
import { useEffect, useRef, useState, type KeyboardEvent, type MouseEvent } from "react";
import { useT } from "@/i18n";
import { cn } from "@/lib/cn";
import { isPlainClick, openThread, threadPath } from "@/lib/route";
import { Button } from "@/ui/button";
import { DropdownMenu, DropdownMenuTrigger } from "@/ui/dropdown-menu";
import { Input } from "@/ui/input";
import type { ThreadItem } from "./group";
import { StateMark } from "./state-mark";
import { ThreadMenu } from "./thread-menu";
import type { ThreadActions } from "./use-thread-actions";

interface ThreadRowProps {
  thread: ThreadItem;
  active: boolean;
  actions: ThreadActions;
  /** Of several that are chosen; null: none is being chosen. */
  chosen: boolean | null;
  onChoose: (id: string) => void;
  onDelete: (id: string) => void;
  onOpen: () => void;
}

export function ThreadRow(props: ThreadRowProps) {
  const { thread, active, actions, chosen, onChoose, onDelete, onOpen } = props;
  const t = useT("threads");
  const common = useT("common");
  const [menu, setMenu] = useState(false);
  const [renaming, setRenaming] = useState(false);
  const link = useRef<HTMLAnchorElement>(null);
  const title = thread.title ?? common("untitled");

  if (renaming) {
    const finish = (next: string | null) => {
      setRenaming(false);
      requestAnimationFrame(() => link.current?.focus());
      if (next && next !== thread.title) void actions.rename(thread.id, next).catch(() => {});
    };
    return (
      <li>
        <TitleField title={thread.title ?? ""} onDone={finish} />
      </li>
    );
  }

  const onClick = (event: MouseEvent) => {
    if (!isPlainClick(event)) return;
    event.preventDefault();
    openThread(thread.id);
    onOpen();
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === "F2") setRenaming(true);
    else if (event.key === "Delete") onDelete(thread.id);
    else if (event.key === " ") onChoose(thread.id);
    else return;
    event.preventDefault();
  };
  if (chosen !== null)
    return (
      <li>
        <button
          type="button"
          role="checkbox"
          aria-checked={chosen}
          data-thread-row
          autoFocus={chosen}
          onClick={() => onChoose(thread.id)}
          onKeyDown={(event) => event.key === "Delete" && chosen && onDelete(thread.id)}
          className={cn(
            "flex h-9 w-full items-center gap-2.5 rounded-lg px-2.5 text-left text-[13px] -outline-offset-2 transition-colors duration-100 hover:bg-sidebar-accent/70 pointer-coarse:h-11 pointer-coarse:text-sm",
            chosen && "bg-sidebar-accent",
          )}
        >
          <Tick done={chosen} />
          <span className="min-w-0 flex-1 truncate">{title}</span>
          <StateMark thread={thread} />
        </button>
      </li>
    );
  return (
    <li className="group/row relative" data-entry={thread.id}>
      <a
        ref={link}
        href={threadPath(thread.id)}
        aria-current={active ? "page" : undefined}
        data-thread-row
        title={title}
        onClick={onClick}
        onKeyDown={onKeyDown}
        onContextMenu={(event) => {
          event.preventDefault();
          setMenu(true);
        }}
        className={cn(
          "flex h-9 items-center gap-2 rounded-lg px-2.5 text-[13px] text-sidebar-foreground outline-offset-[-2px] transition-colors duration-100 hover:bg-sidebar-accent/70 pointer-coarse:h-11 pointer-coarse:pr-11 pointer-coarse:text-sm",
          (active || menu) &&
            "bg-sidebar-accent font-medium text-sidebar-accent-foreground hover:bg-sidebar-accent",
        )}
      >
        <span className="min-w-0 flex-1 truncate">{title}</span>
        <span
          className={cn(
            "flex shrink-0 items-center gap-1.5 group-focus-within/row:pr-6 group-hover/row:pr-6 pointer-coarse:pr-0",
            menu && "pr-6",
          )}
        >
          {thread.pinned && <Pin aria-label={t("pinned")} className="size-3 text-muted-foreground" />}
          <StateMark thread={thread} />
        </span>
      </a>
      <DropdownMenu open={menu} onOpenChange={setMenu}>
        <DropdownMenuTrigger asChild>
          <Button
            variant="ghost"
            size="icon-xs"
            aria-label={t("actions", { title })}
            className={cn(
              "absolute top-1/2 right-1 -translate-y-1/2 text-muted-foreground opacity-0 group-focus-within/row:opacity-100 group-hover/row:opacity-100 pointer-coarse:right-0 pointer-coarse:opacity-100",
              menu && "opacity-100",
            )}
          >
            <MoreHorizontal aria-hidden />
          </Button>
        </DropdownMenuTrigger>
        <ThreadMenu
          thread={thread}
          onRename={() => setRenaming(true)}
          onPin={() => void actions.pin(thread.id, !thread.pinned).catch(() => {})}
          onArchive={() => void actions.archive([thread.id], !thread.archived).catch(() => {})}
          onChoose={() => onChoose(thread.id)}
          onDelete={() => onDelete(thread.id)}
        />
      </DropdownMenu>
    </li>
  );
}

const Tick = ({ done }: { done: boolean }) =>
  done ? (
    <SquareCheck aria-hidden className="size-4 shrink-0 text-primary" />
  ) : (
    <Square aria-hidden className="size-4 shrink-0 text-muted-foreground" />
  );

/** Enter and leaving the field keep what was typed, Escape does not. */
function TitleField({ title, onDone }: { title: string; onDone: (title: string | null) => void }) {
  const t = useT("threads");
  const [text, setText] = useState(title);
  const field = useRef<HTMLInputElement>(null);
  const done = useRef(false);
  useEffect(() => {
    // After the menu has given the focus back.
    const timer = setTimeout(() => field.current?.select(), 0);
    return () => clearTimeout(timer);
  }, []);
  const finish = (next: string | null) => {
    if (done.current) return;
    done.current = true;
    onDone(next?.trim() || null);
  };
  return (
    <Input
      ref={field}
      value={text}
      maxLength={200}
      aria-label={t("renameLabel")}
      className="h-9 px-2.5 text-[13px]"
      onChange={(event) => setText(event.target.value)}
      onBlur={() => finish(text)}
      onKeyDown={(event) => {
        if (event.nativeEvent.isComposing) return;
        event.stopPropagation();
        if (event.key === "Enter") finish(text);
        if (event.key === "Escape") finish(null);
      }}
    />
  );
}
