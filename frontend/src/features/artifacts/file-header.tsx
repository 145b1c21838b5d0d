"use client";
import { useQuery } from "@tanstack/react-query";
import { ArrowLeft, ChevronDown, Code, Download, Eye, Pencil, X } from "lucide-react";
import { useT } from "@/i18n";
import { Button } from "@/ui/button";
import { DropdownMenu, DropdownMenuContent, DropdownMenuItem, DropdownMenuTrigger } from "@/ui/dropdown-menu";
import { IconButton } from "@/ui/icon-button";
import { SegmentedControl } from "@/ui/segmented";
import { SimpleTooltip } from "@/ui/tooltip";
import { deliveredQuery, MAX_EDIT, type FileAt } from "./api";
import { FileIcon } from "./file-icon";
import { FileMenu } from "./file-menu";
import { FileName } from "./file-name";
import { hasTwoSides, isText, type Kind, type Mode } from "./kinds";
import { fileUrl, nameOf } from "@/lib/files";
import { folderOf } from "./paths";
import { VersionPicker } from "./version-picker";

interface Props {
  threadId: string;
  path: string;
  /** null: not known (yet), or gone. */
  file: FileAt | null;
  kind: Kind;
  mode: Mode;
  version: number | null;
  onMode: (mode: Mode) => void;
  onVersion: (version: number | null) => void;
  onPath: (path: string) => void;
  onClose: () => void;
}

export function FileHeader(props: Props) {
  const { threadId, path, file, kind, mode, version, onMode, onVersion, onPath, onClose } = props;
  const t = useT("artifacts");
  const name = nameOf(path);
  const editable =
    file !== null && version === null && mode !== "edit" && isText(kind) && file.size <= MAX_EDIT;
  const sides = file !== null && hasTwoSides(kind) && (mode === "preview" || mode === "code");
  return (
    <header className="flex h-12 shrink-0 items-center gap-0.5 border-b px-2">
      <IconButton label={t("back")} className="text-muted-foreground" onClick={() => onPath("")}>
        <ArrowLeft aria-hidden />
      </IconButton>
      <Picker threadId={threadId} path={path} onPath={onPath} />
      <VersionPicker threadId={threadId} path={path} version={version} onVersion={onVersion} />
      <span className="flex-1" />
      {sides && (
        <SegmentedControl<"preview" | "code">
          label={t("view.mode")}
          size="sm"
          hideLabels
          className="mr-1 hidden @md:inline-flex"
          value={mode}
          onValueChange={onMode}
          options={[
            { value: "preview", label: t("view.preview"), icon: <Eye aria-hidden /> },
            { value: "code", label: t("view.code"), icon: <Code aria-hidden /> },
          ]}
        />
      )}
      {editable && (
        <IconButton
          label={t("view.edit")}
          className="hidden text-muted-foreground @md:inline-flex"
          onClick={() => onMode("edit")}
        >
          <Pencil aria-hidden />
        </IconButton>
      )}
      {file && (
        <>
          <SimpleTooltip label={t("view.download")}>
            <Button
              asChild
              variant="ghost"
              size="icon-sm"
              className="hidden text-muted-foreground @md:inline-flex"
            >
              <a
                href={fileUrl(threadId, path, { version, download: true })}
                download={name}
                aria-label={t("downloadFile", { name })}
              >
                <Download aria-hidden />
              </a>
            </Button>
          </SimpleTooltip>
          <FileMenu file={file} kind={kind} mode={sides ? mode : null} onMode={onMode} editable={editable} />
        </>
      )}
      <IconButton label={t("close")} className="text-muted-foreground" onClick={onClose}>
        <X aria-hidden />
      </IconButton>
    </header>
  );
}

const LISTED = 60;

/** The name of the file, behind which are the others. */
function Picker({ threadId, path, onPath }: Pick<Props, "threadId" | "path" | "onPath">) {
  const t = useT("artifacts");
  const { data } = useQuery(deliveredQuery(threadId));
  const name = nameOf(path);
  const others = (data?.artifacts ?? []).filter((file) => file.path !== path).slice(0, LISTED);
  const label = (
    <>
      <FileIcon name={name} className="text-muted-foreground" />
      <FileName name={name} />
    </>
  );
  if (others.length === 0)
    return <span className="flex min-w-0 items-center gap-2 px-2 text-sm font-medium">{label}</span>;
  return (
    <DropdownMenu>
      <DropdownMenuTrigger asChild>
        <Button
          variant="ghost"
          size="sm"
          className="min-w-0 shrink gap-2 px-2 text-sm"
          aria-label={`${t("view.pick")}: ${name}`}
        >
          {label}
          <ChevronDown aria-hidden className="size-3.5 text-muted-foreground" />
        </Button>
      </DropdownMenuTrigger>
      <DropdownMenuContent align="start" className="max-h-96">
        {others.map((file) => (
          <DropdownMenuItem key={file.path} onSelect={() => onPath(file.path)}>
            <FileIcon name={file.filename} />
            <FileName name={file.filename} className="max-w-64" />
            {folderOf(file.path) && (
              <span className="ml-auto max-w-32 truncate pl-3 text-xs text-muted-foreground">
                {folderOf(file.path)}
              </span>
            )}
          </DropdownMenuItem>
        ))}
      </DropdownMenuContent>
    </DropdownMenu>
  );
}
