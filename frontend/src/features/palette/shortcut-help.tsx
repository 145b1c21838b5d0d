"use client";
import { useT } from "@/i18n";
import { shortcutLabel, SHORTCUTS, type ShortcutId } from "@/lib/shortcuts";
import { Dialog, DialogContent, DialogHeader, DialogTitle } from "@/ui/dialog";
import { Kbd } from "@/ui/kbd";

const WRITING = {
  send: "enter",
  newLine: "shift+enter",
  steer: "mod+enter",
  recall: "↑",
  commands: "/",
} as const;

export default function ShortcutHelp({
  open,
  onOpenChange,
}: {
  open: boolean;
  onOpenChange: (open: boolean) => void;
}) {
  const t = useT("palette");
  const common = useT("common");
  const everywhere = Object.entries(SHORTCUTS) as [ShortcutId, string][];
  const writing = Object.entries(WRITING) as [keyof typeof WRITING, string][];
  return (
    <Dialog open={open} onOpenChange={onOpenChange}>
      <DialogContent aria-describedby={undefined} className="sm:max-w-lg">
        <DialogHeader>
          <DialogTitle>{t("helpTitle")}</DialogTitle>
        </DialogHeader>
        <Keys
          title={t("helpEverywhere")}
          rows={everywhere.map(([id, combo]) => [common(`shortcut.${id}`), combo])}
        />
        <Keys title={t("helpWriting")} rows={writing.map(([id, combo]) => [t(`writing.${id}`), combo])} />
      </DialogContent>
    </Dialog>
  );
}

function Keys({ title, rows }: { title: string; rows: [string, string][] }) {
  return (
    <section>
      <h3 className="pb-1 text-xs font-medium text-muted-foreground">{title}</h3>
      <dl className="divide-y">
        {rows.map(([label, combo]) => (
          <div key={label} className="flex items-center justify-between gap-4 py-2 text-sm">
            <dt>{label}</dt>
            <dd>
              <Kbd>{shortcutLabel(combo)}</Kbd>
            </dd>
          </div>
        ))}
      </dl>
    </section>
  );
}
