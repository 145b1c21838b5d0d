"use client";
import { Paperclip } from "lucide-react";
import { Suspense, useEffect, useRef, useState, type KeyboardEvent } from "react";
import { useT } from "@/i18n";
import { afterPage } from "@/lib/late";
import { cn } from "@/lib/cn";
import { onAttach } from "@/lib/compose";
import { carryOn, forgetEarly } from "@/lib/early";
import { SHORTCUTS, useShortcut } from "@/lib/shortcuts";
import { IconButton } from "@/ui/icon-button";
import { DropOverlay } from "./attachments/drop-overlay";
import { MessageField } from "./message-field";
import { ModePicker } from "./pickers/mode-picker";
import { ModelPicker } from "./pickers/model-picker";
import { Hint, Notices } from "./notices";
import { SendButtons } from "./send-buttons";
import { useMessage } from "./use-message";
import { useWatched } from "./use-watched";
import { useSlash } from "./slash/use-slash";

const AgentPicker = afterPage(() => import("./pickers/agent-picker"));
const AttachmentChips = afterPage(() => import("./attachments/attachment-chips"));
const QueueList = afterPage(() => import("./queue-list"));
const SlashMenu = afterPage(() => import("./slash/slash-menu"));
const SkillChip = afterPage(() => import("./slash/skill-chip"));
const Suggestions = afterPage(() => import("./suggestions"));
const ToolsMenu = afterPage(() => import("./pickers/tools-menu"));

interface MessageBoxProps {
  conversation: string;
  isNew: boolean;
  welcome: boolean;
}

export function MessageBox({ conversation, isNew, welcome }: MessageBoxProps) {
  const t = useT("composer");
  const message = useMessage(conversation, isNew);
  const { session, choice, attachments, field } = message;
  const [open, setOpen] = useState<"model" | "mode" | null>(null);
  const [stopping, setStopping] = useState(false);
  const watched = useWatched(session);
  const files = useRef<HTMLInputElement>(null);
  const folder = useRef<HTMLInputElement>(null);
  useEffect(() => onAttach(() => files.current?.click()), []);
  const focus = () => field.current?.focus();

  const stop = async () => {
    setStopping(true);
    await message.stop();
    setStopping(false);
  };
  // In other fields Escape has a meaning of its own.
  const canStop = session.running && !stopping;
  useShortcut(SHORTCUTS.stop, () => void stop(), { enabled: canStop });
  useEffect(() => {
    if (window.matchMedia("(hover: hover)").matches) field.current?.focus();
    carryOn(field.current);
    forgetEarly();
  }, [field]);

  const slash = useSlash(message.text, message.allowed, message.write, {
    openModels: () => setOpen("model"),
    openModes: () => setOpen("mode"),
    attach: () => files.current?.click(),
    attachFolder: () => folder.current?.click(),
    stop: () => void stop(),
  });

  const dropSkill = slash.prefix
    ? () => message.write(message.text.slice(slash.prefix.length), [0, 0])
    : null;

  const onKeyDown = (event: KeyboardEvent<HTMLTextAreaElement>) => {
    if (isComposing(event)) return;
    const taken = slash.items.length ? inMenu(event, slash) : inField(event, message, dropSkill);
    if (taken) event.preventDefault();
    else if (event.key === "Escape" && !event.shiftKey && canStop) void stop();
  };

  return (
    <div>
      <Suspense>
        {!welcome && message.empty && (
          <Suggestions watched={watched} modelName={choice.settings.modelName} onPick={message.say} />
        )}
        <QueueList />
      </Suspense>
      <div className="relative">
        {slash.items.length > 0 && (
          <Suspense>
            <SlashMenu
              items={slash.items}
              active={slash.active}
              onHover={slash.activate}
              onPick={slash.run}
            />
          </Suspense>
        )}
        <div
          className={cn(
            "rounded-2xl border border-input bg-card transition-[border-color,box-shadow] duration-150",
            "focus-within:border-ring/60 focus-within:ring-3 focus-within:ring-ring/8",
          )}
        >
          {attachments.all.length > 0 && (
            <Suspense>
              <AttachmentChips
                threadId={conversation}
                attachments={attachments}
                onText={(text) => message.write([message.text, text].filter(Boolean).join("\n"))}
              />
            </Suspense>
          )}
          <Notices message={message} />
          {dropSkill && (
            <Suspense>
              <SkillChip name={slash.prefix.slice(1).trim()} onRemove={dropSkill} />
            </Suspense>
          )}
          <MessageField message={message} slash={slash} welcome={welcome} onKeyDown={onKeyDown} />
          <div className="flex items-center gap-0.5 px-2 pb-2">
            <IconButton
              label={t("attach")}
              className="text-muted-foreground"
              onClick={() => files.current?.click()}
            >
              <Paperclip aria-hidden />
            </IconButton>
            <Suspense fallback={<div className="size-8" />}>
              <ToolsMenu conversation={conversation} isNew={isNew} onClosed={focus} />
            </Suspense>
            {(message.agents.length > 0 || message.agent) && (
              <Suspense>
                <AgentPicker
                  agents={message.agents}
                  current={message.agent}
                  onPick={(agent) => choice.change({ agent })}
                  onClosed={focus}
                />
              </Suspense>
            )}
            <ModelPicker
              choice={choice}
              open={open === "model"}
              onOpenChange={(next) => setOpen(next ? "model" : null)}
              onClosed={focus}
            />
            <ModePicker
              choice={choice}
              open={open === "mode"}
              onOpenChange={(next) => setOpen(next ? "mode" : null)}
              onClosed={focus}
            />
            <SendButtons message={message} stopping={stopping} onStop={() => void stop()} />
          </div>
        </div>
      </div>
      <Hint running={session.running} />
      <input
        ref={files}
        type="file"
        multiple
        hidden
        aria-label={t("attach")}
        onChange={(event) => {
          message.addFiles(Array.from(event.target.files ?? []));
          event.target.value = "";
        }}
      />
      <input
        ref={folder}
        type="file"
        {...{ webkitdirectory: "" }}
        hidden
        aria-label={t("slash.folder")}
        onChange={(event) => {
          message.addFolder(Array.from(event.target.files ?? []));
          event.target.value = "";
        }}
      />
      <DropOverlay onFiles={message.addFiles} />
    </div>
  );
}

/** Enter that ends the choice of a word is not ours. Safari tells it by the code alone, after the composition. */
const isComposing = (event: KeyboardEvent) => event.nativeEvent.isComposing || event.keyCode === 229;

function inMenu(event: KeyboardEvent, slash: ReturnType<typeof useSlash>): boolean {
  if (event.key === "ArrowDown") slash.activate(slash.active + 1);
  else if (event.key === "ArrowUp") slash.activate(slash.active - 1);
  else if (event.key === "Escape") slash.dismiss();
  else if (event.key === "Enter" && !event.shiftKey) slash.run(slash.items[slash.active]!);
  else if (event.key === "Tab" && !event.shiftKey) slash.complete(slash.items[slash.active]!);
  else return false;
  return true;
}

function inField(
  event: KeyboardEvent<HTMLTextAreaElement>,
  message: ReturnType<typeof useMessage>,
  dropSkill: (() => void) | null,
): boolean {
  const bare = !event.shiftKey && !event.altKey && !event.ctrlKey && !event.metaKey;
  if (event.key === "Enter") {
    const now = event.ctrlKey || event.metaKey;
    // On a phone's keyboard there is no Shift+Enter; the button sends.
    if (
      event.shiftKey ||
      event.altKey ||
      (!now && window.matchMedia("(hover: none) and (pointer: coarse)").matches)
    )
      return false;
    message.send(now ? "steer" : "turn");
    return true;
  }
  const walking = message.text === "" || message.recalling;
  if (event.key === "ArrowUp" && bare && walking) return message.recall(-1);
  if (event.key === "ArrowDown" && bare && message.recalling) return message.recall(1);
  if (event.key === "Backspace" && dropSkill && event.currentTarget.selectionEnd === 0) {
    dropSkill();
    return true;
  }
  const last = message.attachments.all.at(-1);
  if (event.key === "Backspace" && message.text === "" && last) {
    message.attachments.queue.remove(last.id);
    return true;
  }
  return false;
}
