"use client";
import { Download, Maximize2, Minimize2, ZoomIn, ZoomOut } from "lucide-react";
import { useState } from "react";
import { LateTexts, useT, type LateMessages } from "@/i18n";
import { cn } from "@/lib/cn";
import { downloadBlob } from "@/lib/export";
import { request } from "@/lib/http";
import { Dialog, DialogTitle, FloatingContent, focusItself } from "../dialog";
import { DropdownMenu, DropdownMenuContent, DropdownMenuItem, DropdownMenuTrigger } from "../dropdown-menu";
import { IconButton } from "../icon-button";
import { toast } from "../toast";

const TEXTS: LateMessages = { en: () => import("./en"), zh: () => import("./zh") };

interface PictureToolsProps {
  /** The address of an SVG: of this server, or the picture itself. */
  source: string;
  /** File name for saving, without an ending. */
  name: string;
  alt: string;
}

/** Enlarges a vector picture, and saves it as SVG or PNG. */
export function PictureTools(props: PictureToolsProps) {
  return (
    <LateTexts of={TEXTS}>
      <Tools {...props} />
    </LateTexts>
  );
}

function Tools({ source, name, alt }: PictureToolsProps) {
  const t = useT("pictures");
  const [open, setOpen] = useState(false);
  const savePng = () =>
    void pngOf(source).then(
      (blob) => downloadBlob(`${name}.png`, blob),
      () => toast.error(t("failed")),
    );
  const saveSvg = () =>
    void svgOf(source).then(
      (blob) => downloadBlob(`${name}.svg`, blob),
      (error: Error) => toast.error(error.message),
    );
  return (
    <>
      <IconButton label={t("enlarge")} size="icon-xs" onClick={() => setOpen(true)}>
        <Maximize2 aria-hidden />
      </IconButton>
      <DropdownMenu>
        <DropdownMenuTrigger asChild>
          <IconButton label={t("save")} size="icon-xs">
            <Download aria-hidden />
          </IconButton>
        </DropdownMenuTrigger>
        <DropdownMenuContent align="end">
          <DropdownMenuItem onSelect={saveSvg}>{t("saveSvg")}</DropdownMenuItem>
          <DropdownMenuItem onSelect={savePng}>{t("savePng")}</DropdownMenuItem>
        </DropdownMenuContent>
      </DropdownMenu>
      <Dialog open={open} onOpenChange={setOpen}>
        <FloatingContent
          aria-describedby={undefined}
          onOpenAutoFocus={focusItself}
          className="fixed inset-2 z-50 flex flex-col overflow-hidden rounded-2xl bg-popover text-popover-foreground shadow-float outline-none sm:inset-6"
        >
          <Large source={source} alt={alt} />
        </FloatingContent>
      </Dialog>
    </>
  );
}

const STEP = 1.25;
const [LEAST, MOST] = [0.25, 16];

/** The picture as large as the window, and larger: then it scrolls. */
function Large({ source, alt }: { source: string; alt: string }) {
  const t = useT("pictures");
  const [zoom, setZoom] = useState(1);
  const change = (factor: number) =>
    setZoom((now) => Math.min(MOST, Math.max(LEAST, Math.abs(now * factor - 1) < 0.01 ? 1 : now * factor)));
  return (
    <>
      <div className="flex h-13 shrink-0 items-center gap-1 border-b ps-4 pe-13">
        <DialogTitle className="min-w-0 flex-1 truncate text-sm">{alt}</DialogTitle>
        <IconButton label={t("zoomOut")} disabled={zoom <= LEAST} onClick={() => change(1 / STEP)}>
          <ZoomOut aria-hidden />
        </IconButton>
        <span aria-live="polite" className="w-12 text-center text-xs text-muted-foreground tabular-nums">
          {Math.round(zoom * 100)} %
        </span>
        <IconButton label={t("zoomIn")} disabled={zoom >= MOST} onClick={() => change(STEP)}>
          <ZoomIn aria-hidden />
        </IconButton>
        <IconButton label={t("fit")} disabled={zoom === 1} onClick={() => setZoom(1)}>
          <Minimize2 aria-hidden />
        </IconButton>
      </div>
      <div
        tabIndex={0}
        className="grid min-h-0 flex-1 overflow-auto bg-card p-4 -outline-offset-2"
        onKeyDown={({ key }) => {
          if (key === "+" || key === "=") change(STEP);
          if (key === "-") change(1 / STEP);
          if (key === "0") setZoom(1);
        }}
      >
        <img
          src={source}
          alt={alt}
          className={cn("object-contain", zoom <= 1 ? "m-auto" : "max-w-none")}
          style={{ width: `${zoom * 100}%`, height: `${zoom * 100}%` }}
        />
      </div>
    </>
  );
}

async function svgOf(source: string): Promise<Blob> {
  const answer = source.startsWith("data:") ? await fetchData(source) : await request("GET", source);
  return new Blob([await answer.arrayBuffer()], { type: "image/svg+xml" });
}

/** The page may not fetch addresses that are data. */
const fetchData = async (source: string) =>
  new Response(decodeURIComponent(source.slice(source.indexOf(",") + 1)));

/** Pixels of the longer side: sharp in print, and what every browser's canvas holds. */
const [SHARP, LARGEST] = [2400, 8000];

/** On the colour behind it: what was drawn for the dark cannot be read on white. */
async function pngOf(source: string): Promise<Blob> {
  const picture = new Image();
  picture.src = source;
  await picture.decode();
  const [width, height] = [picture.naturalWidth || 1024, picture.naturalHeight || 1024];
  const longer = Math.max(width, height);
  const scale = Math.min(Math.max(2, SHARP / longer), LARGEST / longer);
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [Math.round(width * scale), Math.round(height * scale)];
  const pen = canvas.getContext("2d");
  if (!pen) throw new Error("no canvas");
  pen.fillStyle = getComputedStyle(document.documentElement).getPropertyValue("--card");
  pen.fillRect(0, 0, canvas.width, canvas.height);
  pen.drawImage(picture, 0, 0, canvas.width, canvas.height);
  const blob = await new Promise<Blob | null>((done) => canvas.toBlob(done, "image/png"));
  if (!blob) throw new Error("no picture");
  return blob;
}
