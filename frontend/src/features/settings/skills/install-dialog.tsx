"use client";
import { PackageOpen } from "lucide-react";
import { useRef, useState, type DragEvent } from "react";
import { FormError, useAccount, useSubmission } from "@/features/auth";
import { useT } from "@/i18n";
import { cn } from "@/lib/cn";
import { Button } from "@/ui/button";
import { Dialog, DialogContent, DialogDescription, DialogHeader, DialogTitle } from "@/ui/dialog";
import { Input } from "@/ui/input";
import { Spinner } from "@/ui/spinner";
import { Field } from "../parts/dialog-form";
import { installArchive, installFrom, type Installed } from "./api";

interface InstallDialogProps {
  open: boolean;
  onClose: () => void;
  onInstalled: (installed: Installed) => void;
}

export function InstallDialog({ open, onClose, onInstalled }: InstallDialogProps) {
  return (
    <Dialog open={open} onOpenChange={(next) => !next && onClose()}>
      <DialogContent className="sm:max-w-lg">
        <InstallForm onInstalled={onInstalled} />
      </DialogContent>
    </Dialog>
  );
}

function InstallForm({ onInstalled }: Pick<InstallDialogProps, "onInstalled">) {
  const t = useT("skills.installing");
  const isAdmin = useAccount().data?.system_role === "admin";
  const form = useSubmission();
  const [url, setUrl] = useState("");
  const install = (work: () => Promise<Installed>) => void form.submit(async () => onInstalled(await work()));
  return (
    <>
      <DialogHeader>
        <DialogTitle>{t("title")}</DialogTitle>
        <DialogDescription>{t("text")}</DialogDescription>
      </DialogHeader>
      <DropArea pending={form.pending} onFile={(file) => install(() => installArchive(file))} />
      {form.message && <FormError message={t("refused", { reason: form.message })} />}
      {isAdmin ? (
        <form
          className="flex items-start gap-2"
          onSubmit={(event) => {
            event.preventDefault();
            install(() => installFrom(url.trim()));
          }}
        >
          <Field label={t("address")} hint={t("addressHint")} className="flex-1">
            {(given) => (
              <Input
                {...given}
                type="url"
                inputMode="url"
                placeholder="https://example.org/skills.git#weather"
                value={url}
                onChange={(event) => setUrl(event.target.value)}
              />
            )}
          </Field>
          <Button
            type="submit"
            variant="outline"
            className="mt-[26px] pointer-coarse:h-11"
            disabled={!url.trim() || form.pending}
          >
            {t("load")}
          </Button>
        </form>
      ) : (
        <p className="text-xs leading-relaxed text-muted-foreground">{t("adminOnly")}</p>
      )}
    </>
  );
}

/** Takes one archive, dropped or picked. */
function DropArea({ pending, onFile }: { pending: boolean; onFile: (file: File) => void }) {
  const t = useT("skills.installing");
  const [over, setOver] = useState(false);
  const input = useRef<HTMLInputElement>(null);
  const take = (file: File | undefined) => file && !pending && onFile(file);
  const drop = (event: DragEvent) => {
    event.preventDefault();
    setOver(false);
    take(event.dataTransfer.files[0]);
  };
  return (
    <div
      onDragOver={(event) => {
        event.preventDefault();
        setOver(true);
      }}
      onDragLeave={() => setOver(false)}
      onDrop={drop}
      className={cn(
        "flex flex-col items-center gap-2 rounded-xl border-2 border-dashed px-4 py-7 text-center transition-colors",
        over && "border-primary bg-primary-soft",
      )}
    >
      {pending ? (
        <Spinner label={t("checking")} />
      ) : (
        <PackageOpen aria-hidden className="size-6 text-muted-foreground" />
      )}
      <p className="text-sm text-muted-foreground">{t(pending ? "checking" : "drop")}</p>
      <Button variant="outline" size="sm" disabled={pending} onClick={() => input.current?.click()}>
        {t("pick")}
      </Button>
      <input
        ref={input}
        type="file"
        accept=".skill,.zip,application/zip"
        hidden
        aria-label={t("pick")}
        onChange={(event) => {
          take(event.target.files?.[0]);
          event.target.value = "";
        }}
      />
    </div>
  );
}
