"use client";
import { Circle, CircleCheck, CircleDot, Hand } from "lucide-react";
import { useT } from "@/i18n";
import { cn } from "@/lib/cn";
import type { Todo } from "../thread/turns";

const ICONS = { completed: CircleCheck, in_progress: CircleDot, waiting: Hand, pending: Circle };

export function TodoList({ todos }: { todos: readonly Todo[] }) {
  const t = useT("chat.todos.status");
  return (
    <ol className="flex flex-col gap-1">
      {todos.map((todo, i) => {
        const Icon = ICONS[todo.status] ?? Circle;
        return (
          <li key={i} className="flex items-start gap-2 text-[13px] leading-5">
            <Icon
              aria-hidden
              className={cn(
                "mt-0.5 size-4 shrink-0 text-muted-foreground",
                todo.status === "completed" && "text-success",
                todo.status === "in_progress" && "text-primary",
                todo.status === "waiting" && "text-warning",
              )}
            />
            <span className="sr-only">{t(todo.status)}</span>
            <span
              className={cn(
                "min-w-0 break-words",
                todo.status === "completed" && "text-muted-foreground line-through decoration-border",
                todo.status === "in_progress" && "font-medium",
              )}
            >
              {todo.content}
            </span>
          </li>
        );
      })}
    </ol>
  );
}

/** A plan as the agent wrote it. */
export function todosIn(value: unknown): Todo[] {
  if (!Array.isArray(value)) return [];
  return value.flatMap((one): Todo[] => {
    const { content, status } = (one ?? {}) as Partial<Todo>;
    return typeof content === "string"
      ? [{ content, status: status && status in ICONS ? status : "pending" }]
      : [];
  });
}
