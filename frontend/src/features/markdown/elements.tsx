"use client";
import { ArrowUpRight, FileText, ImageOff } from "lucide-react";
import OwnLink from "next/link";
import { Suspense, useState, type ComponentProps, type ReactNode } from "react";
import { LateTexts, useT } from "@/i18n";
import { nameOf, pictureUrl, threadPathOf } from "@/lib/files";
import { hostOf, isWeb } from "@/lib/web";
import { Citation, useSource } from "./sources/citation";
import { MARK } from "./sources/citations";
import { usePlace } from "./place";
import { RemotePicture, webTexts } from "./web";

/** A link: to a file of the thread it opens the file, to the settings those, to a page a new tab; anything else is only text. */
export function Link({ href = "", title, children }: ComponentProps<"a">) {
  const source = useSource(href);
  if (source && title === MARK) return <Citation source={source} />;
  const path = threadPathOf(href);
  if (path) return <FileLink path={path}>{children}</FileLink>;
  if (href.startsWith("#")) return <a href={href}>{children}</a>;
  if (/^\/settings\/\w+$/.test(href)) return <OwnLink href={href}>{children}</OwnLink>;
  if (!isWeb(href) && !/^mailto:/i.test(href)) return <span>{children}</span>;
  return (
    <a href={href} target="_blank" rel="noopener noreferrer nofollow" title={href}>
      {children}
    </a>
  );
}

function FileLink({ path, children }: { path: string; children: ReactNode }) {
  const t = useT("markdown");
  const place = usePlace();
  if (!place) return <span>{children}</span>;
  return (
    <button
      type="button"
      title={t("openFile", { name: nameOf(path) })}
      className="inline cursor-pointer text-left font-medium break-words text-primary underline decoration-primary/40 underline-offset-3 hover:decoration-current"
      onClick={() => place.openFile(path)}
    >
      {children}
    </button>
  );
}

/** A path of a file in code signs opens it. */
export function InlineCode({ children }: ComponentProps<"code">) {
  const path = typeof children === "string" && /\.\w{1,8}$/.test(children) ? threadPathOf(children) : null;
  const code = <code>{children}</code>;
  return path ? <FileLink path={path}>{code}</FileLink> : code;
}

/** Pictures of the thread are shown; remote ones when asked for, by way of the server, so that theirs does not learn who reads this. */
export function Picture({ src, alt = "" }: ComponentProps<"img">) {
  const t = useT("markdown");
  const place = usePlace();
  const source = typeof src === "string" ? src : "";
  const url = pictureUrl(place?.threadId ?? null, source);
  const path = threadPathOf(source);
  if (!url) {
    const link = (
      <a
        href={source}
        target="_blank"
        rel="noopener noreferrer nofollow"
        className="inline-flex items-center gap-1"
      >
        <ImageOff aria-hidden className="size-4 shrink-0" />
        {alt && `${alt} · `}
        {t("remoteImage", { host: hostOf(source) })}
        <ArrowUpRight aria-hidden className="size-3.5 shrink-0" />
      </a>
    );
    if (isWeb(source) && place?.threadId)
      return (
        <Suspense fallback={link}>
          <LateTexts of={webTexts} fallback={link}>
            <RemotePicture urls={[source]} title={alt} className="my-2 w-72 max-w-full" />
          </LateTexts>
        </Suspense>
      );
    return isWeb(source) ? (
      link
    ) : (
      <span className="inline-flex items-center gap-1 text-muted-foreground">
        <FileText aria-hidden className="size-4" />
        {alt || source}
      </span>
    );
  }
  return <OwnPicture key={url} url={url} alt={alt} path={path} />;
}

interface OwnPictureProps {
  url: string;
  alt: string;
  /** Of the file that it is, if it is one. */
  path: string | null;
}

function OwnPicture({ url, alt, path }: OwnPictureProps) {
  const t = useT("markdown");
  const place = usePlace();
  const [failed, setFailed] = useState(false);
  if (failed)
    return (
      <span className="my-2 inline-flex max-w-full items-center gap-2 rounded-lg border border-dashed bg-muted/50 px-3 py-2 text-sm text-muted-foreground">
        <ImageOff aria-hidden className="size-4 shrink-0" />
        <span className="min-w-0 break-words">{t("pictureFailed", { name: path ? nameOf(path) : alt })}</span>
      </span>
    );
  const picture = (
    <img
      src={url}
      alt={alt}
      loading="lazy"
      className="max-h-[28rem] w-auto rounded-lg border"
      onError={() => setFailed(true)}
    />
  );
  if (!path || !place) return picture;
  return (
    <button
      type="button"
      className="block"
      aria-label={t("openFile", { name: nameOf(path) })}
      onClick={() => place.openFile(path)}
    >
      {picture}
    </button>
  );
}
