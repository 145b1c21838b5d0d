"use client";
import {
  Code,
  Copy,
  Download,
  Ellipsis,
  ExternalLink,
  Eye,
  FileText,
  FileType,
  Link2,
  Pencil,
  WrapText,
} from "lucide-react";
import { useRef, useState } from "react";
import { toast } from "@/ui/toast";
import { useT } from "@/i18n";
import { useStored } from "@/lib/storage";
import { copyText } from "@/ui/copy-button";
import {
  DropdownMenu,
  DropdownMenuCheckboxItem,
  DropdownMenuContent,
  DropdownMenuItem,
  DropdownMenuSeparator,
  DropdownMenuTrigger,
} from "@/ui/dropdown-menu";
import { IconButton } from "@/ui/icon-button";
import { previewUrl, readText, type FileAt } from "./api";
import { isText, type Kind, type Mode } from "./kinds";
import { fileUrl, nameOf } from "@/lib/files";
import { REPORT_FORMATS, reportName, saveReport, type ReportFormat } from "./reports";

interface Props {
  file: FileAt;
  kind: Kind;
  /** null: there is only one way to look at it. */
  mode: Mode | null;
  onMode: (mode: Mode) => void;
  editable: boolean;
}

/** Rarely used actions; in a narrow panel also those that the header has no room for. */
export function FileMenu({ file, kind, mode, onMode, editable }: Props) {
  const t = useT("artifacts.view");
  const report = useT("viewers.report");
  const common = useT("common");
  const trigger = useRef<HTMLButtonElement>(null);
  const [narrow, setNarrow] = useState(false);
  const [wrap, setWrap] = useStored("files.wrap", false);
  const [saving, setSaving] = useState(false);
  const save = async (format: ReportFormat) => {
    const name = reportName(file.path, format);
    setSaving(true);
    try {
      const missing = await saveReport(file.threadId, file.path, format);
      if (missing.length > 0) toast.warning(report("partly", { name }), { description: missing.join("\n") });
      else toast.success(report("ready", { name }));
    } catch (error) {
      toast.error(report("failed", { name }), { description: (error as Error).message });
    } finally {
      setSaving(false);
    }
  };
  const copy = async (text: () => Promise<string>) => {
    const done = await text().then(copyText, () => false);
    if (done) toast.success(common("copied"));
    else toast.error(t("copyFailed"));
  };
  return (
    // The menu is outside of the panel, whose width no style there can ask for. 448 is what the head calls @md.
    <DropdownMenu
      onOpenChange={(open) =>
        open && setNarrow((trigger.current?.closest("section")?.clientWidth ?? Infinity) < 448)
      }
    >
      <DropdownMenuTrigger asChild>
        <IconButton ref={trigger} label={t("more")} pending={saving} className="text-muted-foreground">
          <Ellipsis aria-hidden />
        </IconButton>
      </DropdownMenuTrigger>
      <DropdownMenuContent align="end">
        {mode && (
          <DropdownMenuItem
            className={narrow ? "" : "hidden"}
            onSelect={() => onMode(mode === "code" ? "preview" : "code")}
          >
            {mode === "code" ? <Eye aria-hidden /> : <Code aria-hidden />}
            {t(mode === "code" ? "preview" : "code")}
          </DropdownMenuItem>
        )}
        {editable && (
          <DropdownMenuItem className={narrow ? "" : "hidden"} onSelect={() => onMode("edit")}>
            <Pencil aria-hidden />
            {t("edit")}
          </DropdownMenuItem>
        )}
        <DropdownMenuItem asChild className={narrow ? "" : "hidden"}>
          <a
            href={fileUrl(file.threadId, file.path, { version: file.version, download: true })}
            download={nameOf(file.path)}
          >
            <Download aria-hidden />
            {t("download")}
          </a>
        </DropdownMenuItem>
        {isReport(file) &&
          REPORT_FORMATS.map((format) => (
            <DropdownMenuItem key={format} onSelect={() => void save(format)}>
              {format === "pdf" ? <FileType aria-hidden /> : <FileText aria-hidden />}
              {report(format)}
            </DropdownMenuItem>
          ))}
        <DropdownMenuItem onSelect={() => void openInTab(file, kind)}>
          <ExternalLink aria-hidden />
          {t("newTab")}
        </DropdownMenuItem>
        <DropdownMenuSeparator />
        {isText(kind) && (
          <DropdownMenuItem onSelect={() => void copy(async () => (await readText(file)).text)}>
            <Copy aria-hidden />
            {t("copy")}
          </DropdownMenuItem>
        )}
        <DropdownMenuItem onSelect={() => void copy(async () => file.path)}>
          <Link2 aria-hidden />
          {t("copyPath")}
        </DropdownMenuItem>
        {isText(kind) && (
          <>
            <DropdownMenuSeparator />
            <DropdownMenuCheckboxItem checked={wrap} onCheckedChange={setWrap}>
              <WrapText aria-hidden />
              {t("wrap")}
            </DropdownMenuCheckboxItem>
          </>
        )}
      </DropdownMenuContent>
    </DropdownMenu>
  );
}

/** The server makes documents of Markdown as it is now. */
const isReport = ({ path, version }: FileAt) => version === null && /\.(md|markdown)$/i.test(path);

/** A site at its own address, anything else as the server gives it. The tab is opened first: later it would be a pop-up. */
async function openInTab(file: FileAt, kind: Kind) {
  const tab = window.open("", "_blank");
  if (!tab) return;
  tab.opener = null;
  let url = fileUrl(file.threadId, file.path, { version: file.version });
  if (kind === "html" && file.version === null)
    url = await previewUrl(file.threadId, file.path, false).catch(() => url);
  tab.location.replace(url);
}
