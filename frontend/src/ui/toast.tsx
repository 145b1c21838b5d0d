"use client";
import { CircleAlert, CircleCheck, TriangleAlert, X } from "lucide-react";
import { useEffect, useState, useSyncExternalStore } from "react";
import { useT } from "@/i18n";
import { Button } from "./button";

type Kind = "success" | "warning" | "error";

interface Notice {
  id: number;
  kind: Kind;
  title: string;
  description?: string;
  action?: { label: string; run: () => void };
  /** It went, and the action was not taken. */
  onGone?: () => void;
}

/** More would cover the page. */
const MOST = 3;
const SECONDS = { success: 4, warning: 8, error: 10, undo: 8 };
const NONE: readonly Notice[] = [];
let notices = NONE;
let number = 0;
const listeners = new Set<() => void>();

function set(next: readonly Notice[]) {
  notices = next;
  listeners.forEach((listener) => listener());
}

/** Takes those out that are not kept. */
function keep(kept: (notice: Notice) => boolean) {
  const gone = notices.filter((one) => !kept(one));
  set(notices.filter(kept));
  gone.forEach((one) => one.onGone?.());
}

const show =
  (kind: Kind) =>
  (title: string, rest: Omit<Notice, "id" | "kind" | "title"> = {}) => {
    const alike = (one: Notice) => one.title === title && one.description === rest.description;
    keep((one) => !alike(one) || one.action !== undefined);
    set([...notices, { id: (number += 1), kind, title, ...rest }]);
    const shown = notices.slice(-MOST);
    keep((one) => shown.includes(one));
  };

/** Short notices. They are part of the first load: without a network nothing could be loaded to say so. */
export const toast = { success: show("success"), warning: show("warning"), error: show("error") };

const subscribe = (listener: () => void) => {
  listeners.add(listener);
  return () => void listeners.delete(listener);
};

/** Position of notices: above everything but the page's header and its banners. */
export function Toaster() {
  const shown = useSyncExternalStore(
    subscribe,
    () => notices,
    () => NONE,
  );
  return (
    <div
      aria-live="polite"
      className="pointer-events-none fixed inset-x-0 top-[anchor(--banners_bottom,3.25rem)] z-70 flex flex-col items-center gap-2 px-4 py-2 print:hidden"
    >
      {shown.map((notice) => (
        <Toast key={notice.id} notice={notice} />
      ))}
    </div>
  );
}

const ICONS = { success: CircleCheck, warning: TriangleAlert, error: CircleAlert };
const COLOURS: Record<Kind, string> = {
  success: "text-success",
  warning: "text-warning",
  error: "text-destructive",
};

/** Goes by itself, but not while it is looked at. */
function Toast({ notice: { id, kind, title, description, action } }: { notice: Notice }) {
  const t = useT("common");
  const [held, setHeld] = useState(false);
  const seconds = action ? SECONDS.undo : SECONDS[kind];
  const close = () => keep((one) => one.id !== id);
  useEffect(() => {
    if (held) return;
    const timer = setTimeout(() => keep((one) => one.id !== id), seconds * 1000);
    return () => clearTimeout(timer);
  }, [held, id, seconds]);
  const Icon = ICONS[kind];
  return (
    <div
      className="pointer-events-auto flex w-full max-w-sm animate-rise items-start gap-2.5 rounded-xl bg-popover p-3 text-sm text-popover-foreground shadow-float motion-reduce:animate-none"
      onPointerEnter={() => setHeld(true)}
      onPointerLeave={() => setHeld(false)}
      onFocus={() => setHeld(true)}
      onBlur={() => setHeld(false)}
    >
      <Icon aria-hidden className={`mt-0.5 size-4 shrink-0 ${COLOURS[kind]}`} />
      <div className="min-w-0 flex-1 [overflow-wrap:anywhere]">
        <p className="font-medium">{title}</p>
        {description && <p className="text-muted-foreground">{description}</p>}
      </div>
      {action && (
        <Button
          variant="outline"
          size="xs"
          onClick={() => {
            set(notices.filter((one) => one.id !== id));
            action.run();
          }}
        >
          {action.label}
        </Button>
      )}
      <Button
        variant="ghost"
        size="icon-xs"
        className="-m-1 text-muted-foreground"
        aria-label={t("close")}
        onClick={close}
      >
        <X aria-hidden />
      </Button>
    </div>
  );
}
