"use client";
import { FileText, Pencil } from "lucide-react";
import { useState } from "react";
import { useT } from "@/i18n";
import { cn } from "@/lib/cn";
import { formatBytes } from "@/lib/format";
import { useTextDraft } from "@/lib/text-draft";
import { Button } from "@/ui/button";
import { CopyButton } from "@/ui/copy-button";
import { IconButton } from "@/ui/icon-button";
import { BranchSwitch } from "./marks/branch-switch";
import { useChat } from "./chat-context";
import { useHolds } from "./find/find";
import { isPicture, pictureUrl } from "@/lib/files";
import { QuestionEditor } from "./question-editor";
import type { FileRef, Sending } from "./thread/message";
import type { Turn } from "./thread/turns";

/** Longer messages are cut, and open. */
const LONG = 1200;

interface QuestionProps {
  turn: Turn;
  question: NonNullable<Turn["question"]>;
  /** The same for all versions of it. */
  place: string;
  /** A run is active: the question cannot be changed. */
  busy: boolean;
}

export function Question({ turn, question, place, busy }: QuestionProps) {
  const t = useT("chat.question");
  const { threadId } = useChat();
  // What is written belongs to the place: another version of the message changes nothing of it.
  const [draft, write, forget] = useTextDraft(`chats/${threadId}/${place}`, question.text);
  const [editing, setEditing] = useState<"asked" | "kept" | null>(draft === question.text ? null : "kept");
  const close = () => {
    forget();
    setEditing(null);
  };
  if (editing)
    return (
      <QuestionEditor
        turnId={turn.id}
        text={draft}
        asked={editing === "asked"}
        busy={busy}
        onChange={write}
        onClose={close}
      />
    );
  return (
    <div className="group/question flex flex-col items-end gap-0.5">
      <h2 className="sr-only">{t("you")}</h2>
      <Attachments files={question.files} images={question.images} />
      {question.text && <Bubble text={question.text} sending={question.sending !== false} />}
      <div className="-mb-1 flex h-7 items-center pointer-coarse:h-10">
        {question.sending ? (
          <SendingMark sending={question.sending} />
        ) : (
          <>
            <div className="flex items-center opacity-0 transition-opacity group-focus-within/question:opacity-100 group-hover/question:opacity-100 pointer-coarse:opacity-100">
              <CopyButton value={question.text} />
              <IconButton
                label={t("edit")}
                size="icon-xs"
                className="text-muted-foreground"
                disabled={busy}
                onClick={() => setEditing("asked")}
              >
                <Pencil aria-hidden />
              </IconButton>
            </div>
            {turn.branch && <BranchSwitch turnId={turn.id} branch={turn.branch} disabled={busy} />}
          </>
        )}
      </div>
    </div>
  );
}

/** Reason for which a message waits. The usual short delay shows nothing. */
function SendingMark({ sending }: { sending: Exclude<Sending, false> }) {
  const t = useT("chat.question");
  return (
    <span
      role="status"
      className={cn(
        "pr-1 text-xs text-muted-foreground",
        sending === "offline"
          ? "text-warning"
          : "animate-in fade-in-0 [animation-delay:400ms] [animation-fill-mode:backwards]",
      )}
    >
      {t(`waits.${sending}`)}
    </span>
  );
}

function Bubble({ text, sending }: { text: string; sending: boolean }) {
  const t = useT("chat.question");
  const [opened, setAll] = useState(false);
  const holds = useHolds([text]);
  const all = opened || holds;
  const isLong = text.length > LONG || text.split("\n").length > 20;
  return (
    <div
      className={cn(
        "max-w-[85%] rounded-2xl rounded-br-md bg-secondary px-4 py-2.5",
        sending && "opacity-70",
      )}
    >
      <p
        data-question=""
        className={cn(
          "text-[15px] leading-relaxed [overflow-wrap:anywhere] whitespace-pre-wrap",
          isLong && !all && "line-clamp-12",
        )}
      >
        {text}
      </p>
      {isLong && (
        <Button
          variant="link"
          size="xs"
          className="mt-1 px-0"
          aria-expanded={all}
          onClick={() => setAll(!all)}
        >
          {t(all ? "less" : "more")}
        </Button>
      )}
    </div>
  );
}

function Attachments({ files, images }: { files: FileRef[]; images: string[] }) {
  const t = useT("chat.question");
  const { threadId, actions } = useChat();
  const pictures = images.map((source) => pictureUrl(threadId, source)).filter((url) => url !== null);
  if (!files.length && !pictures.length) return null;
  return (
    <ul className="flex max-w-[85%] flex-wrap justify-end gap-2">
      {pictures.map((url, i) => (
        <li key={url}>
          <img src={url} alt={t("picture", { n: i + 1 })} className="max-h-48 max-w-full rounded-xl border" />
        </li>
      ))}
      {files.map((file) => (
        <li key={file.filename} className="min-w-0">
          <button
            type="button"
            className="flex h-14 max-w-64 items-center gap-2.5 rounded-xl border bg-card pr-3.5 pl-2 text-left transition-colors hover:bg-accent"
            disabled={!file.path}
            onClick={() => file.path && actions.openFile(file.path)}
          >
            <Thumbnail file={file} />
            <span className="flex min-w-0 flex-col">
              <span className="truncate text-[13px] font-medium">{file.filename}</span>
              {file.size !== undefined && (
                <span className="text-xs text-muted-foreground">{formatBytes(file.size)}</span>
              )}
            </span>
          </button>
        </li>
      ))}
    </ul>
  );
}

function Thumbnail({ file }: { file: FileRef }) {
  const { threadId } = useChat();
  const url = file.path && isPicture(file.filename) ? pictureUrl(threadId, file.path) : null;
  if (url)
    return <img src={url} alt="" loading="lazy" className="size-10 shrink-0 rounded-lg object-cover" />;
  return (
    <span className="flex size-10 shrink-0 items-center justify-center rounded-lg bg-muted text-muted-foreground">
      <FileText aria-hidden className="size-5" />
    </span>
  );
}
