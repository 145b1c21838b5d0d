/** Differences by line (Myers, 1986), for texts of the size of a tool call: small, and without another package. */

export interface DiffLine {
  kind: "same" | "added" | "removed";
  text: string;
  /** Line numbers from 1; null on the side that has no such line. */
  before: number | null;
  after: number | null;
}

/** With more changes than that the middle is shown as replaced: such a diff is too long to read line by line. */
const MAX_CHANGES = 1000;

export function diffLines(before: string, after: string): DiffLine[] {
  const [a, b] = [linesOf(before), linesOf(after)];
  let start = 0;
  while (start < a.length && start < b.length && a[start] === b[start]) start += 1;
  let end = 0;
  while (end < a.length - start && end < b.length - start && a[a.length - 1 - end] === b[b.length - 1 - end])
    end += 1;
  const lines: DiffLine[] = [];
  let [x, y] = [0, 0];
  const same = (count: number) => {
    for (let i = 0; i < count; i += 1) lines.push({ kind: "same", text: a[x]!, before: ++x, after: ++y });
  };
  same(start);
  for (const kind of edits(a.slice(start, a.length - end), b.slice(start, b.length - end))) {
    if (kind === "same") same(1);
    else if (kind === "removed") lines.push({ kind, text: a[x]!, before: ++x, after: null });
    else lines.push({ kind, text: b[y]!, before: null, after: ++y });
  }
  same(end);
  return lines;
}

export const countChanges = (lines: DiffLine[]) => ({
  added: lines.filter((line) => line.kind === "added").length,
  removed: lines.filter((line) => line.kind === "removed").length,
});

export type Piece = { kind: "lines"; lines: DiffLine[] } | { kind: "fold"; lines: DiffLine[] };

/** Long stretches without a change, but for `context` lines around changes, are folded. */
export function folded(lines: DiffLine[], context = 3): Piece[] {
  const near = new Set<number>();
  lines.forEach((line, index) => {
    if (line.kind === "same") return;
    for (let i = Math.max(0, index - context); i <= index + context; i += 1) near.add(i);
  });
  const pieces: Piece[] = [];
  lines.forEach((line, index) => {
    const kind = near.has(index) ? "lines" : "fold";
    const last = pieces.at(-1);
    if (last?.kind === kind) last.lines.push(line);
    else pieces.push({ kind, lines: [line] });
  });
  // A fold takes a line itself: one that hides less than two is no gain.
  return pieces.map((piece) =>
    piece.kind === "fold" && piece.lines.length < 2 ? { ...piece, kind: "lines" } : piece,
  );
}

/** The hunks of a unified diff. */
export function hunksOf(patch: string): Piece[] {
  const hunks: Piece[] = [];
  let [before, after] = [0, 0];
  for (const line of patch.split("\n")) {
    const start = /^@@ -(\d+)(?:,\d+)? \+(\d+)/.exec(line);
    if (start) {
      [before, after] = [Number(start[1]), Number(start[2])];
      hunks.push({ kind: "lines", lines: [] });
    }
    const text = line.slice(1);
    const lines = hunks.at(-1)?.lines; // none yet: the names of the files
    if (line[0] === "+") lines?.push({ kind: "added", text, before: null, after: after++ });
    else if (line[0] === "-") lines?.push({ kind: "removed", text, before: before++, after: null });
    else if (line[0] === " ") lines?.push({ kind: "same", text, before: before++, after: after++ });
  }
  return hunks;
}

function linesOf(text: string): string[] {
  if (text === "") return [];
  const lines = text.split(/\r\n|\n|\r/);
  if (lines.at(-1) === "") lines.pop();
  return lines;
}

/** The shortest way from `a` to `b`; all of one and then all of the other if that is too long a search. */
function edits(a: string[], b: string[]): DiffLine["kind"][] {
  const trace = search(a, b);
  if (!trace) return [...a.map(() => "removed" as const), ...b.map(() => "added" as const)];
  const kinds: DiffLine["kind"][] = [];
  let [x, y] = [a.length, b.length];
  for (let depth = trace.length - 1; depth >= 0; depth -= 1) {
    const furthest = trace[depth]!;
    const k = cameFrom(furthest, depth, x - y);
    const [fromX, fromY] = [furthest(k), furthest(k) - k];
    for (; x > fromX && y > fromY; x -= 1, y -= 1) kinds.push("same");
    if (depth > 0) kinds.push(x === fromX ? "added" : "removed");
    [x, y] = [fromX, fromY];
  }
  return kinds.reverse();
}

/** Furthest point on the diagonal `k`. */
type Furthest = (k: number) => number;

const cameFrom = (furthest: Furthest, depth: number, k: number) =>
  k === -depth || (k !== depth && furthest(k - 1) < furthest(k + 1)) ? k + 1 : k - 1;

/** For each number of changes what had been reached before it; null if there are too many. */
function search(a: string[], b: string[]): Furthest[] | null {
  const limit = Math.min(a.length + b.length, MAX_CHANGES);
  const middle = limit + 1;
  const reached = new Int32Array(2 * middle + 1);
  const trace: Furthest[] = [];
  for (let depth = 0; depth <= limit; depth += 1) {
    const known = reached.slice(middle - depth - 1, middle + depth + 2);
    trace.push((k) => known[k + depth + 1]!);
    for (let k = -depth; k <= depth; k += 2) {
      const from = cameFrom((diagonal) => reached[middle + diagonal]!, depth, k);
      let x = reached[middle + from]! + (from < k ? 1 : 0);
      while (x < a.length && x - k < b.length && a[x] === b[x - k]) x += 1;
      reached[middle + k] = x;
      if (x >= a.length && x - k >= b.length) return trace;
    }
  }
  return null;
}
