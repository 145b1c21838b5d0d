/** Numbers and times as people read them. */

export function formatBytes(bytes: number): string {
  const units = ["B", "kB", "MB", "GB", "TB"];
  let at = 0;
  while (bytes >= 1000 && at < units.length - 1) {
    bytes /= 1000;
    at += 1;
  }
  return `${at === 0 || bytes >= 100 ? Math.round(bytes) : Number(bytes.toPrecision(2))} ${units[at]}`;
}

/** 950, 1.2k, 35k, 1.5M */
export function formatTokens(count: number): string {
  if (count < 1000) return String(count);
  const [value, unit] = count < 999_500 ? [count / 1000, "k"] : [count / 1_000_000, "M"];
  return `${value < 9.95 ? Number(value.toFixed(1)) : Math.round(value)}${unit}`;
}

const LEAST_COST = 0.0001;

/** Money with as many digits as small sums need; a bare number if its currency is not known. */
export function formatCost(amount: number, currency: string | null, locale: string): string {
  const small = amount > 0 && amount < LEAST_COST;
  const digits = amount === 0 ? 0 : amount < 0.01 ? 4 : amount < 1 ? 3 : 2;
  const format = new Intl.NumberFormat(locale, {
    ...(currency && { style: "currency", currency, currencyDisplay: "narrowSymbol" }),
    minimumFractionDigits: digits,
    maximumFractionDigits: digits,
  });
  return small ? `<${format.format(LEAST_COST)}` : format.format(amount);
}

/** 0.4s, 12s, 3m 5s, 2h 10m; 3分钟5秒 */
export function formatDuration(milliseconds: number, locale: string): string {
  const say = (value: number, unit: "second" | "minute" | "hour", digits = 0) =>
    new Intl.NumberFormat(locale, {
      style: "unit",
      unit,
      unitDisplay: "narrow",
      minimumFractionDigits: digits,
      maximumFractionDigits: digits,
    }).format(value);
  const seconds = milliseconds / 1000;
  if (seconds < 9.95) return say(seconds, "second", 1);
  const whole = Math.round(seconds);
  const minutes = Math.floor(whole / 60);
  const parts =
    minutes === 0
      ? [say(whole, "second")]
      : minutes < 60
        ? [say(minutes, "minute"), whole % 60 && say(whole % 60, "second")]
        : [say(Math.floor(minutes / 60), "hour"), minutes % 60 && say(minutes % 60, "minute")];
  return parts.filter(Boolean).join(locale.startsWith("zh") ? "" : " ");
}

/** As {@link formatDuration}, with milliseconds below a second: 35ms. */
export function formatBrief(milliseconds: number, locale: string): string {
  if (milliseconds >= 999.5) return formatDuration(milliseconds, locale);
  return new Intl.NumberFormat(locale, {
    style: "unit",
    unit: "millisecond",
    unitDisplay: "narrow",
    maximumFractionDigits: 0,
  }).format(milliseconds);
}

const STEPS: [Intl.RelativeTimeFormatUnit, number][] = [
  ["year", 31_536_000],
  ["month", 2_592_000],
  ["week", 604_800],
  ["day", 86_400],
  ["hour", 3600],
  ["minute", 60],
];

/** "5 minutes ago", "yesterday"; "now" for less than a minute. */
export function formatRelativeTime(date: string | Date, locale: string, now = Date.now()): string {
  const seconds = (new Date(date).getTime() - now) / 1000;
  const format = new Intl.RelativeTimeFormat(locale, { numeric: "auto", style: "short" });
  for (const [unit, size] of STEPS) {
    if (Math.abs(seconds) >= size) return format.format(Math.trunc(seconds / size), unit);
  }
  return format.format(0, "second");
}
