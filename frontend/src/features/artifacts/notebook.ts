/** Jupyter notebooks, read leniently: what is not understood is left out, and nothing in one is ever run. */
import { withoutAnsi } from "@/lib/ansi";

export type Output = { kind: "text"; text: string; isError: boolean } | { kind: "image"; src: string };

export interface Cell {
  kind: "markdown" | "code" | "raw";
  source: string;
  /** The number beside a cell that was executed. */
  count: number | null;
  outputs: Output[];
}

export interface Notebook {
  language: string;
  cells: Cell[];
}

type Json = Record<string, unknown>;

/** Throws a SyntaxError if it is no notebook. */
export function parseNotebook(text: string): Notebook {
  const data = asObject(JSON.parse(text));
  const cells = data.cells ?? asObject(asList(data.worksheets)[0]).cells; // the latter until 2015
  if (!Array.isArray(cells)) throw new SyntaxError("This is no notebook.");
  const metadata = asObject(data.metadata);
  const language = asObject(metadata.language_info).name ?? asObject(metadata.kernelspec).language;
  return {
    language: typeof language === "string" ? language : "python",
    cells: cells.map((cell) => cellOf(asObject(cell))),
  };
}

function cellOf(cell: Json): Cell {
  const type = cell.cell_type;
  const count = cell.execution_count ?? cell.prompt_number;
  return {
    kind: type === "markdown" || type === "heading" ? "markdown" : type === "code" ? "code" : "raw",
    source: joined(cell.source ?? cell.input),
    count: typeof count === "number" ? count : null,
    outputs: asList(cell.outputs).flatMap((output) => outputOf(asObject(output))),
  };
}

function outputOf(output: Json): Output[] {
  if (output.output_type === "stream")
    return textOutput(joined(output.text), output.name === "stderr" || output.stream === "stderr");
  if (output.output_type === "error" || output.output_type === "pyerr") {
    const trace = asList(output.traceback).join("\n");
    return textOutput(trace || `${joined(output.ename)}: ${joined(output.evalue)}`, true);
  }
  const data = output.data === undefined ? withLongNames(output) : asObject(output.data);
  for (const type of ["image/png", "image/jpeg", "image/gif", "image/webp"]) {
    const encoded = joined(data[type]).replace(/\s/g, "");
    if (/^[A-Za-z0-9+/]+=*$/.test(encoded)) return [{ kind: "image", src: `data:${type};base64,${encoded}` }];
  }
  const svg = joined(data["image/svg+xml"]);
  if (svg) return [{ kind: "image", src: `data:image/svg+xml;charset=utf-8,${encodeURIComponent(svg)}` }];
  for (const type of ["text/plain", "text/markdown", "text/latex"]) {
    if (joined(data[type])) return textOutput(joined(data[type]), false);
  }
  if (joined(data["text/html"])) return textOutput(textOfHtml(joined(data["text/html"])), false);
  if (data["application/json"] !== undefined)
    return textOutput(JSON.stringify(data["application/json"], null, 2), false);
  return [];
}

/** Version 3 has `png` and `text` beside the rest. */
function withLongNames(output: Json): Json {
  return {
    "image/png": output.png,
    "image/jpeg": output.jpeg,
    "image/svg+xml": output.svg,
    "text/plain": output.text,
    "text/html": output.html,
  };
}

function textOutput(text: string, isError: boolean): Output[] {
  const plain = withoutAnsi(text).replace(/(?<!\n)\n+$/, "");
  return plain ? [{ kind: "text", text: plain, isError }] : [];
}

/** Its words alone; the document it is parsed in loads and runs nothing. */
export function textOfHtml(html: string): string {
  const body = new DOMParser().parseFromString(html, "text/html").body;
  body.querySelectorAll("script, style, template").forEach((element) => element.remove());
  body.querySelectorAll("td, th").forEach((cell) => cell.append("\t"));
  body.querySelectorAll("tr, p, div, li, br").forEach((block) => block.append("\n"));
  return (body.textContent ?? "").replace(/(?<![ \t])[ \t]*\n\s*/g, "\n").trim();
}

const joined = (value: unknown): string =>
  Array.isArray(value) ? value.map(String).join("") : typeof value === "string" ? value : "";
const asObject = (value: unknown): Json =>
  typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Json) : {};
const asList = (value: unknown): unknown[] => (Array.isArray(value) ? value : []);
