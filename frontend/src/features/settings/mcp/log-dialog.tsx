"use client";
import { useQuery } from "@tanstack/react-query";
import { useT } from "@/i18n";
import { Button } from "@/ui/button";
import { CopyButton } from "@/ui/copy-button";
import {
  Dialog,
  DialogContent,
  DialogDescription,
  DialogFooter,
  DialogHeader,
  DialogTitle,
} from "@/ui/dialog";
import { Waiting } from "../parts";
import { log } from "./api";

interface LogDialogProps {
  name: string;
  open: boolean;
  onOpenChange: (open: boolean) => void;
}

export function LogDialog({ name, open, onOpenChange }: LogDialogProps) {
  const t = useT("mcp");
  return (
    <Dialog open={open} onOpenChange={onOpenChange}>
      <DialogContent className="sm:max-w-2xl">
        <DialogHeader>
          <DialogTitle>{t("logTitle", { name })}</DialogTitle>
          <DialogDescription>{t("logText")}</DialogDescription>
        </DialogHeader>
        <Lines name={name} />
      </DialogContent>
    </Dialog>
  );
}

function Lines({ name }: { name: string }) {
  const t = useT("mcp");
  const { data, error, refetch, isFetching } = useQuery({
    queryKey: ["mcp", "log", name],
    queryFn: () => log(name),
    gcTime: 0,
  });
  if (!data) return <Waiting error={error} retry={refetch} rows={2} />;
  return (
    <>
      <LogText label={t("logTitle", { name })} lines={data} />
      <DialogFooter>
        <Button variant="outline" pending={isFetching} onClick={() => void refetch()}>
          {t("logNow")}
        </Button>
      </DialogFooter>
    </>
  );
}

/** Output of a program, scrolled to its end. */
export function LogText({ label, lines }: { label: string; lines: string[] }) {
  const t = useT("mcp");
  const text = lines.join("\n");
  const toEnd = (element: HTMLElement | null) => element?.scrollTo(0, element.scrollHeight);
  if (!text) return <p className="text-[13px] text-muted-foreground">{t("logEmpty")}</p>;
  return (
    <div className="relative min-w-0">
      <pre
        key={text}
        ref={toEnd}
        tabIndex={0}
        aria-label={label}
        className="max-h-80 overflow-auto rounded-lg border bg-code p-3 pr-11 font-mono text-xs leading-relaxed break-words whitespace-pre-wrap text-code-foreground"
      >
        {text}
      </pre>
      <CopyButton value={text} className="absolute top-1.5 right-1.5 bg-code" />
    </div>
  );
}
