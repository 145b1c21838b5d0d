"use client";
import { useEffect, useRef, type KeyboardEvent } from "react";
import { useT } from "@/i18n";
import { shortcutLabel } from "@/lib/shortcuts";
import { Button } from "@/ui/button";
import { Kbd } from "@/ui/kbd";
import { Textarea } from "@/ui/textarea";
import { useChat } from "./chat-context";
import { useAction } from "./use-action";

interface QuestionEditorProps {
  turnId: string;
  text: string;
  /** It was opened right now: one writes at once. */
  asked: boolean;
  /** A run is active: the question cannot be changed. */
  busy: boolean;
  onChange: (text: string) => void;
  onClose: () => void;
}

/** The person's message in place: Escape leaves it as it was, ⌘Enter sends it as a new branch. */
export function QuestionEditor({ turnId, text, asked, busy, onChange, onClose }: QuestionEditorProps) {
  const t = useT("chat.question");
  const common = useT("common");
  const { actions } = useChat();
  const { pending, error, run } = useAction();
  const field = useRef<HTMLTextAreaElement>(null);
  const empty = text.trim() === "";

  useEffect(() => {
    if (!asked || !field.current) return;
    field.current.focus({ preventScroll: true });
    field.current.setSelectionRange(field.current.value.length, field.current.value.length);
  }, [asked]);

  const send = async () => {
    if (empty || pending || busy) return;
    if (await run(() => actions.edit(turnId, text.trim()))) onClose();
  };
  const onKeyDown = (event: KeyboardEvent) => {
    // Keys that choose a character of an input method belong to it; 229 is what Safari says of them.
    if (event.nativeEvent.isComposing || event.keyCode === 229) return;
    if (event.key === "Escape") onClose();
    else if (event.key === "Enter" && (event.metaKey || event.ctrlKey)) void send();
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  return (
    <div className="w-full rounded-2xl border bg-card p-2.5">
      <Textarea
        ref={field}
        aria-label={t("field")}
        value={text}
        disabled={pending}
        className="border-0 bg-transparent text-[15px] hover:border-0 focus-visible:ring-0 dark:bg-transparent"
        onChange={(event) => onChange(event.target.value)}
        onKeyDown={onKeyDown}
      />
      {error && <p className="px-3 pb-1 text-xs text-destructive">{t("failed", { message: error })}</p>}
      <div className="flex flex-wrap items-center justify-end gap-2 pt-1">
        <p className="mr-auto px-3 text-xs text-muted-foreground">{t("editHint")}</p>
        <Button variant="ghost" size="sm" disabled={pending} onClick={onClose}>
          {common("cancel")}
        </Button>
        <Button size="sm" pending={pending} disabled={empty || busy} onClick={send}>
          {t("send")}
          <Kbd className="border-primary-foreground/25 bg-primary-foreground/15 text-primary-foreground pointer-coarse:hidden">
            {shortcutLabel("mod+enter")}
          </Kbd>
        </Button>
      </div>
    </div>
  );
}
