/** A value as lines: names and what they hold, lists as items, nothing of JSON's signs. Pure. */
export function outlineOf(value: unknown): string {
  if (typeof value === "string" && value) return value;
  return linesOf(value).join("\n");
}

const NOTHING = "–";

function linesOf(value: unknown): string[] {
  if (Array.isArray(value))
    return value.length ? value.flatMap((one) => indented(linesOf(one), "• ", "  ")) : [NOTHING];
  if (typeof value === "object" && value !== null) {
    const entries = Object.entries(value);
    return entries.length ? entries.flatMap(([name, one]) => field(nameOf(name), one)) : [NOTHING];
  }
  if (value === null || value === undefined || value === "") return [NOTHING];
  const lines = String(value).split("\n");
  return lines.length === 1 ? lines : indented(lines, "│ ", "│ ");
}

function field(name: string, value: unknown): string[] {
  const lines = linesOf(value);
  const isLeaf = typeof value !== "object" || value === null || lines[0] === NOTHING;
  return isLeaf && lines.length === 1
    ? [`${name}: ${lines[0]}`]
    : [`${name}:`, ...indented(lines, "  ", "  ")];
}

/** A name is one line. */
const nameOf = (name: string) => (/[\n:]/.test(name) ? JSON.stringify(name) : name);

const indented = (lines: readonly string[], first: string, rest: string) =>
  lines.map((line, i) => (i === 0 ? first : rest) + line);
