import { hostOf } from "@/lib/web";
import { SiteIcon } from "@/ui/site-icon";

/** Icon and host, as they stand in cards and lists. */
export function SiteName({ url }: { url: string }) {
  return (
    <span className="flex min-w-0 items-center gap-2">
      <SiteIcon url={url} />
      <span className="truncate text-xs text-muted-foreground">{hostOf(url)}</span>
    </span>
  );
}
