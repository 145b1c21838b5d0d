import {
  Braces,
  File,
  FileArchive,
  FileAudio,
  FileCode,
  FileImage,
  FileSpreadsheet,
  FileText,
  FileType,
  FileVideo,
  Globe,
  NotebookText,
  Presentation,
  Shapes,
  Table2,
  type LucideIcon,
} from "lucide-react";
import { cn } from "@/lib/cn";
import { kindOf, type Kind } from "./kinds";

const ICONS: Record<Kind, LucideIcon> = {
  markdown: FileText,
  html: Globe,
  image: FileImage,
  svg: Shapes,
  pdf: FileType,
  table: Table2,
  notebook: NotebookText,
  json: Braces,
  code: FileCode,
  text: FileText,
  audio: FileAudio,
  video: FileVideo,
  office: FileSpreadsheet,
  archive: FileArchive,
  binary: File,
};

/** Families share a tint: writing, pictures, data, the rest. */
const TINTS: Record<Kind, string> = {
  markdown: "bg-primary-soft text-primary",
  html: "bg-primary-soft text-primary",
  pdf: "bg-destructive-soft text-destructive",
  office: "bg-primary-soft text-primary",
  image: "bg-success-soft text-success",
  svg: "bg-success-soft text-success",
  video: "bg-success-soft text-success",
  audio: "bg-success-soft text-success",
  table: "bg-warning-soft text-warning",
  notebook: "bg-warning-soft text-warning",
  json: "bg-muted text-muted-foreground",
  code: "bg-muted text-muted-foreground",
  text: "bg-muted text-muted-foreground",
  archive: "bg-muted text-muted-foreground",
  binary: "bg-muted text-muted-foreground",
};

function iconOf(name: string): [LucideIcon, string] {
  const kind = kindOf(name);
  const icon = /\.(pptx?|odp)$/i.test(name)
    ? Presentation
    : /\.(docx?|odt|rtf|epub)$/i.test(name)
      ? FileText
      : ICONS[kind];
  return [icon, TINTS[kind]];
}

export function FileIcon({ name, className }: { name: string; className?: string }) {
  const [Icon] = iconOf(name);
  return <Icon aria-hidden className={cn("size-4 shrink-0", className)} />;
}

/** The icon on a tile in the colour of its family. */
export function FileTile({ name, className }: { name: string; className?: string }) {
  const [Icon, tint] = iconOf(name);
  return (
    <span
      aria-hidden
      className={cn("flex size-9 shrink-0 items-center justify-center rounded-lg", tint, className)}
    >
      <Icon className="size-[1.125rem]" />
    </span>
  );
}
