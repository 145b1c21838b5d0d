"use client";
import { useQuery } from "@tanstack/react-query";
import { FileText, ImageIcon, RotateCw, TextCursorInput, X } from "lucide-react";
import { useT } from "@/i18n";
import { threadApi, type UploadList } from "@/lib/api";
import { fileUrl, isPicture } from "@/lib/files";
import { cn } from "@/lib/cn";
import { formatBytes } from "@/lib/format";
import { http, request } from "@/lib/http";
import { keys } from "@/lib/keys";
import { toast } from "@/ui/toast";
import type { Attachment } from "./attachment";
import { HUGE_PASTE, PASTED } from "./limits";
import type { Attachments } from "./use-attachments";

interface AttachmentChipsProps {
  threadId: string;
  attachments: Attachments;
  /** A pasted text shall be part of the message. */
  onText: (text: string) => void;
}

/** The files of the message that is being written. */
export default function AttachmentChips({ threadId, attachments, onText }: AttachmentChipsProps) {
  const t = useT("composer");
  const conversions = useConversions(threadId, attachments.all);
  return (
    <ul aria-label={t("attached")} className="flex max-h-40 flex-wrap gap-2 overflow-y-auto px-3 pt-3">
      {attachments.all.map((one) => (
        <Chip
          key={one.id}
          threadId={threadId}
          file={one}
          conversion={one.converting ? conversions?.get(one.name) : undefined}
          onRemove={() => attachments.queue.remove(one.id)}
          onRetry={() => attachments.queue.retry(one.id)}
          onText={async () => {
            try {
              onText(await textOf(threadId, one));
              attachments.queue.remove(one.id);
            } catch (error) {
              toast.error((error as Error).message);
            }
          }}
        />
      ))}
    </ul>
  );
}

/** Two of them in a chat have different names on the server. */
const isPasted = ({ file, name }: Attachment) =>
  file ? file.name === PASTED : /^pasted-text(_\d+)?\.txt$/.test(name);

/** After a reload it is the server that has it. */
const textOf = async (threadId: string, { file, uploaded }: Attachment) =>
  file || !uploaded
    ? ((await file?.text()) ?? "")
    : (await request("GET", fileUrl(threadId, uploaded.path))).text();

type Listed = UploadList["files"][number];

const POLL_MS = 1500;

/** The uploads by name, if one of them becomes text; asked for again until none does. */
function useConversions(threadId: string, all: readonly Attachment[]) {
  const names = all.flatMap((one) => (one.converting ? [one.name] : []));
  const { data } = useQuery({
    queryKey: [...keys.uploads(threadId), "conversions", names],
    queryFn: async ({ signal }) => {
      const { files } = await http.get<UploadList>(threadApi(threadId, "/uploads/list"), { signal });
      return new Map(files.map((file) => [file.filename, file]));
    },
    enabled: names.length > 0,
    refetchInterval: ({ state }) =>
      !state.data || names.some((name) => state.data?.get(name)?.conversion === "running") ? POLL_MS : false,
  });
  return data;
}

interface ChipProps {
  threadId: string;
  file: Attachment;
  /** Undefined if the file does not become text, or nothing is known of that yet. */
  conversion: Listed | undefined;
  onRemove: () => void;
  onRetry: () => void;
  onText: () => Promise<void>;
}

function Chip({ threadId, file, conversion, onRemove, onRetry, onText }: ChipProps) {
  const t = useT("composer");
  const failed = file.status === "failed";
  const going = file.status === "uploading" || file.status === "waiting";
  const reason = conversion?.conversion_error ?? undefined;
  const state = failed
    ? t("uploadFailed", { reason: file.error ?? "" })
    : [
        formatBytes(file.size),
        reason && t("noText"),
        conversion?.conversion === "running" && t("readingText"),
      ]
        .filter(Boolean)
        .join(" · ");
  return (
    <li
      className={cn(
        "relative flex max-w-64 animate-rise items-center gap-2.5 overflow-hidden rounded-lg border bg-background py-1.5 pr-1 pl-1.5",
        failed && "border-destructive/40 bg-destructive-soft",
      )}
    >
      <Picture threadId={threadId} file={file} />
      <div className="min-w-0 flex-1 leading-tight">
        <p className="truncate text-[13px] font-medium" title={file.name}>
          {file.name}
        </p>
        <p
          className={cn(
            "truncate text-xs tabular-nums",
            failed ? "text-destructive" : "text-muted-foreground",
          )}
          title={failed ? state : reason}
        >
          {file.status === "uploading" ? `${Math.round(file.progress * 100)} % · ${state}` : state}
        </p>
      </div>
      {failed && file.file && (
        <ChipButton label={t("retryFile", { name: file.name })} onClick={onRetry}>
          <RotateCw aria-hidden className="size-3.5" />
        </ChipButton>
      )}
      {isPasted(file) && file.size <= HUGE_PASTE && (
        <ChipButton label={t("pasteAsText")} onClick={() => void onText()}>
          <TextCursorInput aria-hidden className="size-3.5" />
        </ChipButton>
      )}
      <ChipButton label={t("removeFile", { name: file.name })} onClick={onRemove}>
        <X aria-hidden className="size-3.5" />
      </ChipButton>
      {going && (
        <div
          role="progressbar"
          aria-label={t("uploading", { name: file.name })}
          aria-valuenow={Math.round(file.progress * 100)}
          className="absolute inset-x-0 bottom-0 h-0.5 bg-muted"
        >
          <div
            className="h-full bg-primary transition-[width] duration-200 motion-reduce:transition-none"
            style={{ width: `${Math.max(4, file.progress * 100)}%` }}
          />
        </div>
      )}
    </li>
  );
}

/** Pictures of more bytes are not worth a thumbnail. */
const THUMBNAIL_BYTES = 10 << 20;

function Picture({ threadId, file }: { threadId: string; file: Attachment }) {
  const image = isPicture(file.name);
  if (image && file.uploaded && file.size < THUMBNAIL_BYTES) {
    const source = fileUrl(threadId, file.uploaded.path);
    return <img src={source} alt="" className="size-9 shrink-0 rounded-md bg-muted object-cover" />;
  }
  const Icon = image ? ImageIcon : FileText;
  return (
    <span
      aria-hidden
      className="flex size-9 shrink-0 items-center justify-center rounded-md bg-muted text-muted-foreground"
    >
      <Icon className="size-4" />
    </span>
  );
}

function ChipButton({ label, ...rest }: { label: string; onClick: () => void; children: React.ReactNode }) {
  return (
    <button
      type="button"
      aria-label={label}
      title={label}
      className="flex size-7 shrink-0 items-center justify-center rounded-md text-muted-foreground transition-colors hover:bg-accent hover:text-foreground pointer-coarse:size-10"
      {...rest}
    />
  );
}
