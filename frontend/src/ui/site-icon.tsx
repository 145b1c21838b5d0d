import { cn } from "@/lib/cn";
import { hostOf } from "@/lib/web";

/** An initial on a colour, both from the host's name: a site's own icon would have to be loaded from it. */
export function SiteIcon({ url, className }: { url: string; className?: string }) {
  const host = hostOf(url);
  const name = host
    .replace(/:\d+$/, "")
    .split(".")
    .slice(0, -1)
    .sort((one, other) => other.length - one.length)[0];
  const hue = [...host].reduce((sum, sign) => (sum * 31 + sign.codePointAt(0)!) % 360, 7);
  return (
    <span
      aria-hidden
      className={cn(
        "inline-flex size-4 shrink-0 items-center justify-center rounded-[4px] text-[10px] leading-none font-semibold text-white uppercase select-none",
        className,
      )}
      style={{ backgroundColor: `oklch(0.5 0.12 ${hue})` }}
    >
      {(name || host).slice(0, 1)}
    </span>
  );
}
