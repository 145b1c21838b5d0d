"use client";
import { useEffect, useEffectEvent, useRef, useState, type ClipboardEvent } from "react";
import { toast } from "@/ui/toast";
import { useSession } from "@/features/chat";
import { useT } from "@/i18n";
import { ApiError } from "@/lib/http";
import { forgetDraft, readDraft, restoreDraft, writeDraft, type Draft } from "@/lib/drafts";
import { useDraftKeeper } from "./use-draft-keeper";
import { onFill, onQuote, onSay, placeholderIn } from "@/lib/compose";
import { earlyText } from "@/lib/early";
import { NOT_WALKING, ownMessages, step } from "./history";
import type * as folderCode from "./attachments/folders";
import {
  filesOf,
  LIMITS,
  LONG_PASTE,
  megabytes,
  PASTED,
  type Admission,
  type Refusal,
} from "./attachments/limits";
import { steerOrSend } from "./steer";
import { useAgentChoice } from "./use-agent";
import { useAttachments } from "./attachments/use-attachments";

/** `turn`: a message of its own, after the active run if there is one. `steer`: handed to that run. */
export type How = "turn" | "steer";

/** Number of refused files that are named. */
const NAMED = 3;

const LIMIT_TEXT: Record<Refusal, string> = {
  count: String(LIMITS.files),
  size: megabytes(LIMITS.fileBytes),
  total: megabytes(LIMITS.totalBytes),
  folder: "",
  empty: "",
};

/** The message that is being written, and what can be done with it. */
export function useMessage(conversation: string, isNew: boolean) {
  const t = useT("composer");
  const session = useSession();
  const { choice, ...agency } = useAgentChoice(conversation);
  const field = useRef<HTMLTextAreaElement>(null);
  const [kept] = useState(() => readDraft(conversation, isNew));
  const [text, setText] = useState(() => [kept.text, earlyText()].filter(Boolean).join("\n\n"));
  const attachments = useAttachments(conversation, kept.files);
  const [recall, setRecall] = useState(NOT_WALKING);
  const [armed, setArmed] = useState<How | null>(null);

  const takeBack = (draft: Draft) => {
    setText((now) => withMore(draft, { text: now, files: [] }).text);
    attachments.queue.restore(draft.files);
  };
  useDraftKeeper(conversation, isNew, { text, files: attachments.ready }, takeBack);

  const write = (next: string, selection?: [number, number]) => {
    setText(next);
    requestAnimationFrame(() => {
      if (!field.current) return;
      field.current.focus();
      if (!next.endsWith(field.current.value)) return; // the person has typed meanwhile
      const before = next.length - field.current.value.length; // a skill in front stands in a chip
      const [start, end] = selection ?? [next.length, next.length];
      field.current.setSelectionRange(Math.max(0, start - before), Math.max(0, end - before));
    });
  };
  const fill = useEffectEvent((next: string | null) => {
    if (next === null) field.current?.focus();
    else write(next, placeholderIn(next));
  });
  useEffect(() => onFill((next) => fill(next)), []);

  const quote = useEffectEvent((passage: string) =>
    write(`${[text.trimEnd(), passage].filter(Boolean).join("\n\n")}\n\n`),
  );
  useEffect(() => onQuote((passage) => quote(passage)), []);

  const deliver = async (how: How, words = text) => {
    const draft = { text: words.trim(), files: attachments.ready };
    setText("");
    setRecall(NOT_WALKING);
    attachments.queue.clear();
    forgetDraft(conversation, isNew);
    const keep = () => writeDraft(conversation, isNew, withMore(draft, readDraft(conversation, isNew)));
    window.addEventListener("pagehide", keep); // it may wait for the network, and the page not wait for that
    try {
      if (how === "turn" || !session.running) await session.send(draft, choice.settings);
      else await steerOrSend(session, draft, choice.settings);
    } catch (error) {
      restoreDraft(conversation, draft);
      if (error instanceof ApiError && error.code === "withdrawn") return;
      toast.error(t(how === "steer" ? "notSteered" : "notSent"), { description: (error as Error).message });
    } finally {
      window.removeEventListener("pagehide", keep);
    }
  };

  /** The follow-up is not sent then: it returns to the field. */
  const stop = async () => {
    try {
      const held = session.queued.filter(({ state }) => state === "queued").toReversed();
      for (const one of held) {
        await session.cancelQueued(one.runId);
        const files = one.files.flatMap(({ filename, size = 0, path }) =>
          path ? [{ filename, size, path }] : [],
        );
        takeBack({ text: one.text, files });
      }
      await session.stop();
    } catch (error) {
      toast.error(t("notStopped"), { description: (error as Error).message });
    }
  };

  const say = useEffectEvent((words: string) => void deliver("turn", words));
  useEffect(() => onSay((words) => say(words)), []);

  const empty = text.trim() === "" && attachments.all.length === 0;
  const send = (how: How) => {
    if (empty) return;
    if (attachments.uploading) setArmed(how);
    else if (attachments.failed) toast.error(t("failedFiles"));
    else void deliver(how);
  };
  const fire = useEffectEvent(() => {
    setArmed(null);
    if (armed) send(armed);
  });
  const { queue } = attachments;
  useEffect(() => {
    if (!armed) return;
    let over = false;
    void queue.settled().then(() => over || fire());
    return () => {
      over = true;
    };
  }, [armed, queue]);

  const addFiles = (files: File[], folders: FileSystemDirectoryEntry[] = []) => {
    if (folders.length) void addFolders((read) => read.readFolders(folders), files);
    else report(attachments.queue.add(files), [], String(files.length));
    field.current?.focus();
  };

  /** Content of folders is read by a module of its own. */
  const addFolders = async (
    read: (code: typeof folderCode) => folderCode.FoundFiles | Promise<folderCode.FoundFiles>,
    beside: File[],
  ) => {
    const found = await read(await import("./attachments/folders"));
    const files = [...beside, ...found.files];
    report(attachments.queue.add(files), found.refused, `${files.length}${found.more ? "+" : ""}`);
  };

  const report = (left: Admission["refused"], folders: Admission["refused"], all: string) => {
    const refused = [...left, ...folders];
    for (const reason of new Set(refused.map((one) => one.reason))) {
      const names = refused.filter((one) => one.reason === reason).map((one) => one.name);
      const taken = parseInt(all) - left.length;
      const rest = names.length > NAMED ? `, … (+${names.length - NAMED})` : "";
      const told = names.slice(0, NAMED).join(", ") + rest;
      toast.warning(t(`refused.${reason}`, { names: told, all, taken, limit: LIMIT_TEXT[reason] }));
    }
  };

  return {
    session,
    choice,
    ...agency,
    field,
    text,
    attachments,
    empty,
    armed: armed !== null,
    addFiles,
    addFolder: (picked: File[]) => void addFolders((read) => read.pickedFolder(picked), []),
    write,
    send,
    stop,
    say: (words: string) => void deliver("turn", words),
    change: (next: string) => {
      setText(next);
      setRecall(NOT_WALKING);
    },
    /** True if there was a message to recall. */
    recall: (direction: -1 | 1) => {
      const own = ownMessages(session.turns.map((turn) => turn.question?.text ?? ""));
      const next = step(recall, direction, own, text);
      if (!next) return false;
      setRecall(next[0]);
      write(next[1]);
      return true;
    },
    recalling: recall.at !== null,
    paste: (event: ClipboardEvent) => {
      const words = event.clipboardData.getData("text/plain").replace(/\r\n?/g, "\n");
      const { files, folders } = filesOf(event.clipboardData);
      if (words === "" && files.length + folders.length) {
        // Spreadsheets put a picture of the cells beside their text; then the text is meant.
        event.preventDefault();
        addFiles(files, folders);
      } else if (words.length > LONG_PASTE) {
        event.preventDefault();
        addFiles([new File([words], PASTED, { type: "text/plain" })]);
        toast.success(t("longPaste", { count: words.length }));
      }
    },
  };
}

/** A message that returns to the field, joined with the draft written meanwhile. */
const withMore = (draft: Draft, now: Draft): Draft => ({
  text: now.text.trim() && now.text !== draft.text ? `${draft.text}\n\n${now.text}` : draft.text,
  files: [...draft.files, ...now.files],
});

export type Message = ReturnType<typeof useMessage>;
