"use client";
import { ChevronDown, ListTodo } from "lucide-react";
import { useId, useState } from "react";
import { useT } from "@/i18n";
import { cn } from "@/lib/cn";
import { useSession } from "./thread/session";
import { TodoList } from "./tool-card/todo-list";

/** The agent's plan, above the message field: one line with where it stands, which opens. */
export function TodoDock() {
  const t = useT("chat.todos");
  const { todos, running } = useSession();
  const [open, setOpen] = useState(false);
  const id = useId();
  const done = todos.filter((todo) => todo.status === "completed").length;
  const isOver = done === todos.length;
  if (!todos.length || (isOver && !running)) return null;
  const current =
    todos.find((todo) => todo.status === "in_progress") ?? todos.find((todo) => todo.status !== "completed");
  return (
    <section aria-label={t("title")} className="animate-rise px-4 motion-reduce:animate-none">
      <div className="overflow-hidden rounded-t-2xl border border-b-0 bg-card">
        <button
          type="button"
          aria-expanded={open}
          aria-controls={open ? id : undefined}
          title={t(open ? "hide" : "show")}
          className="flex h-9 w-full items-center gap-2.5 px-3.5 text-left text-[13px] transition-colors hover:bg-accent/60 pointer-coarse:h-11"
          onClick={() => setOpen(!open)}
        >
          <ListTodo aria-hidden className="size-4 shrink-0 text-muted-foreground" />
          <span className="min-w-0 flex-1 truncate">
            {isOver ? t("allDone") : (current?.content ?? t("title"))}
          </span>
          <span className="shrink-0 text-xs text-muted-foreground tabular-nums">
            {t("progress", { done, total: todos.length })}
          </span>
          <ChevronDown
            aria-hidden
            className={cn(
              "size-4 shrink-0 text-muted-foreground transition-transform duration-150 motion-reduce:transition-none",
              !open && "rotate-180",
            )}
          />
        </button>
        <div aria-hidden className="h-0.5 bg-muted">
          <div
            className="h-full bg-primary transition-[width] duration-200 motion-reduce:transition-none"
            style={{ width: `${(100 * done) / todos.length}%` }}
          />
        </div>
        {open && (
          <div id={id} tabIndex={0} className="max-h-56 overflow-y-auto px-3.5 py-2.5">
            <TodoList todos={todos} />
          </div>
        )}
      </div>
    </section>
  );
}
