import { useLocale } from "@/i18n";

interface ChartProps {
  days: readonly { day: string; value: number }[];
  format: (value: number) => string;
}

const HEIGHT = 120;
const SLOT = 10;

/** A bar for each day. It is a picture of the table of days, which is what is read out. */
export function Chart({ days, format }: ChartProps) {
  const [locale] = useLocale();
  const most = Math.max(...days.map(({ value }) => value));
  const date = new Intl.DateTimeFormat(locale, { month: "short", day: "numeric", timeZone: "UTC" });
  const name = (day: string) => date.format(new Date(day));
  const gap = days.length > 100 ? 1 : 2;
  return (
    <div
      aria-hidden
      className="relative px-4 pt-3 pb-3 text-[11px] text-muted-foreground tabular-nums sm:px-5"
    >
      <div className="flex justify-between border-b border-dashed pb-0.5">
        <span>{most > 0 ? format(most) : ""}</span>
      </div>
      <svg
        viewBox={`0 0 ${days.length * SLOT} ${HEIGHT}`}
        preserveAspectRatio="none"
        className="block h-32 w-full border-b"
      >
        {days.map(({ day, value }, i) => {
          const height = most > 0 ? Math.max(value > 0 ? 1.5 : 0, (HEIGHT * value) / most) : 0;
          return (
            <g key={day} className="text-primary/80 hover:text-primary">
              <title>{`${name(day)}: ${format(value)}`}</title>
              <rect x={i * SLOT} width={SLOT} height={HEIGHT} fill="transparent" />
              <rect
                x={i * SLOT + gap / 2}
                y={HEIGHT - height}
                width={SLOT - gap}
                height={height}
                fill="currentColor"
              />
            </g>
          );
        })}
      </svg>
      <div className="flex justify-between pt-1">
        <span>{name(days[0]!.day)}</span>
        <span>{name(days.at(-1)!.day)}</span>
      </div>
    </div>
  );
}
