"use client";
import { useQuery } from "@tanstack/react-query";
import { Globe, GlobeLock, RotateCw } from "lucide-react";
import { useState } from "react";
import { useT } from "@/i18n";
import { cn } from "@/lib/cn";
import { Button } from "@/ui/button";
import { ErrorState } from "@/ui/error-state";
import { IconButton } from "@/ui/icon-button";
import { Popover, PopoverContent, PopoverTrigger } from "@/ui/popover";
import { Switch } from "@/ui/switch";
import { nameOf } from "@/lib/files";
import { previewUrl } from "../api";
import { Waiting } from "./text-frame";
import type { ViewerProps } from "./types";

/** The page with its neighbours, at an address of its own without any of our rights. Its scripts run; its network is off. */
export default function Site({ file }: ViewerProps) {
  const t = useT("viewers.site");
  const [network, setNetwork] = useState(false);
  const [reloads, setReloads] = useState(0);
  const [loaded, setLoaded] = useState<string | null>(null);
  const {
    data: url,
    error,
    refetch,
  } = useQuery({
    queryKey: ["preview", file.threadId, file.path, network],
    queryFn: () => previewUrl(file.threadId, file.path, network),
    staleTime: 40 * 60_000, // an address is valid for an hour
    gcTime: 0,
    refetchOnWindowFocus: false,
  });
  if (!url) {
    if (error) return <ErrorState title={t("expired")} error={error} retry={() => void refetch()} />;
    return <Waiting />;
  }
  const frame = `${url} ${file.etag} ${reloads}`;
  return (
    <div className="relative flex min-h-0 flex-1 flex-col">
      <div className="flex min-h-9 shrink-0 items-center gap-1 border-b bg-muted/40 pr-2 pl-3">
        <p className="min-w-0 flex-1 truncate text-xs text-muted-foreground">{nameOf(file.path)}</p>
        <Network on={network} onChange={setNetwork} />
        <IconButton
          size="icon-xs"
          label={t("reload")}
          className="text-muted-foreground"
          onClick={() => {
            setReloads(reloads + 1);
            void refetch();
          }}
        >
          <RotateCw aria-hidden className={cn(loaded !== frame && "motion-safe:animate-spin")} />
        </IconButton>
      </div>
      <iframe
        key={frame}
        src={url}
        title={t("title", { name: nameOf(file.path) })}
        sandbox="allow-scripts allow-forms"
        referrerPolicy="no-referrer"
        className="min-h-0 w-full flex-1 bg-[canvas] scheme-light"
        onLoad={() => setLoaded(frame)}
      />
    </div>
  );
}

function Network({ on, onChange }: { on: boolean; onChange: (on: boolean) => void }) {
  const t = useT("viewers.site");
  const Icon = on ? Globe : GlobeLock;
  return (
    <Popover>
      <PopoverTrigger asChild>
        <Button variant="ghost" size="xs" className={on ? "text-warning" : "text-muted-foreground"}>
          <Icon aria-hidden />
          {t("network")}
        </Button>
      </PopoverTrigger>
      <PopoverContent align="end" className="w-72 space-y-3 p-3" aria-label={t("network")}>
        <p className="text-[13px] leading-relaxed text-pretty text-muted-foreground">
          {on ? t("networkOn") : t("networkOff")}
        </p>
        <label className="flex items-center justify-between gap-3 text-[13px] font-medium">
          {t("allow")}
          <Switch checked={on} onCheckedChange={onChange} />
        </label>
      </PopoverContent>
    </Popover>
  );
}
