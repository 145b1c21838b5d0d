"use client";
import { useMutation } from "@tanstack/react-query";
import { ImageOff } from "lucide-react";
import { useEffect, useRef } from "react";
import { useT } from "@/i18n";
import { fileUrl } from "@/lib/files";
import { hostOf } from "@/lib/web";
import { cn } from "@/lib/cn";
import { Button } from "@/ui/button";
import { SiteIcon } from "@/ui/site-icon";
import { Spinner } from "@/ui/spinner";
import { loadPicture } from "./sources/pages";
import { usePlace } from "./place";

interface Props {
  /** Addresses of the picture; the first one that can be loaded is shown. */
  urls: string[];
  title: string;
  /** The page that it stands on; links lead there. */
  page?: string;
  width?: number | null;
  height?: number | null;
  className?: string;
}

/** A picture of another site. The server loads it when the person asks for it; until then its frame says what it would be. */
export default function RemotePicture({ urls, title, page, width, height, className }: Props) {
  const t = useT("web");
  const place = usePlace();
  const threadId = place?.threadId ?? null;
  const { mutate, data, error, isPending } = useMutation({
    mutationFn: () => firstLoaded(threadId!, urls),
  });
  const shown = useRef<HTMLButtonElement>(null);
  const pressed = useRef(false);
  useEffect(() => {
    if (data && pressed.current) shown.current?.focus({ preventScroll: true });
  }, [data]);
  const address = page || urls[0]!;
  const name = title || t("picture", { host: hostOf(address) });
  return (
    <span className={cn("flex min-w-0 flex-col gap-1.5", className)}>
      <span className="relative flex aspect-[4/3] w-full flex-col items-center justify-center gap-2 overflow-hidden rounded-lg border bg-muted/50 p-2 text-center">
        {data ? (
          <button
            ref={shown}
            type="button"
            aria-label={t("openPicture", { title: name })}
            className="absolute inset-0 -outline-offset-2"
            onClick={() => place?.openFile(data)}
          >
            <img src={fileUrl(threadId!, data)} alt={name} className="size-full object-contain" />
          </button>
        ) : (
          <>
            {isPending ? <Spinner /> : <ImageOff aria-hidden className="size-5 text-muted-foreground" />}
            {width && height ? (
              <span className="text-xs text-muted-foreground tabular-nums">{`${width} × ${height}`}</span>
            ) : null}
            {error && (
              <span role="alert" className="line-clamp-2 text-xs text-destructive" title={error.message}>
                {t("pictureFailed")}
              </span>
            )}
            {threadId && (
              <Button
                size="xs"
                variant="outline"
                title={t("pictureHint")}
                aria-label={t("showPictureOf", { title: name })}
                disabled={isPending}
                onClick={() => {
                  pressed.current = true;
                  mutate();
                }}
              >
                {t("showPicture")}
              </Button>
            )}
          </>
        )}
      </span>
      <span className="flex min-w-0 flex-col">
        <a
          href={address}
          target="_blank"
          rel="noopener noreferrer nofollow"
          title={address}
          className="truncate text-xs font-medium text-foreground underline decoration-border underline-offset-3 hover:decoration-current"
        >
          {name}
        </a>
        <span className="flex min-w-0 items-center gap-1.5 text-xs text-muted-foreground">
          <SiteIcon url={address} className="size-3.5 text-[9px]" />
          <span className="min-w-0 truncate">{hostOf(address)}</span>
        </span>
      </span>
    </span>
  );
}

async function firstLoaded(threadId: string, urls: string[]): Promise<string> {
  let failure: unknown;
  for (const url of new Set(urls)) {
    try {
      return await loadPicture(threadId, url);
    } catch (error) {
      failure ??= error;
    }
  }
  throw failure;
}
