/** Kind of a file by its name; the server's media type decides if the name does not. */

export type Kind =
  | "markdown"
  | "html"
  | "image"
  | "svg"
  | "pdf"
  | "table"
  | "notebook"
  | "json"
  | "code"
  | "text"
  | "audio"
  | "video"
  | "office"
  | "archive"
  | "binary";

/** A way to look at a file. */
export type Mode = "preview" | "code" | "edit" | "compare";

const BY_EXTENSION = extensions<Kind>({
  markdown: "md markdown mdx",
  html: "html htm xhtml",
  image: "png jpg jpeg gif webp avif bmp ico",
  svg: "svg",
  pdf: "pdf",
  table: "csv tsv",
  notebook: "ipynb",
  json: "json geojson webmanifest",
  code:
    "js mjs cjs jsx ts mts cts tsx vue svelte css scss sass less py pyi rb php go rs java kt kts scala swift c h cc cpp hpp cs m lua " +
    "pl r jl dart ex exs erl clj hs ml fs sql sh bash zsh fish ps1 bat yaml yml toml ini cfg conf env xml xsl xslt tex bib diff patch " +
    "graphql proto cmake gradle nix tf jsonl ndjson map dockerfile makefile",
  text: "txt log rst org srt vtt ics",
  audio: "mp3 wav ogg oga opus flac m4a",
  video: "mp4 m4v webm mov ogv",
  office: "docx doc xlsx xlsm xls pptx ppt odt ods odp rtf epub",
  archive: "zip gz tgz tar bz2 xz 7z rar skill whl",
  binary: "exe dll so bin wasm woff woff2 ttf otf db sqlite parquet pkl npy pt tif tiff heic",
});

const BY_NAME = extensions<Kind>({ code: "dockerfile makefile", text: "license readme" });

/** Those with a source that can be read, and with a view of their own besides. */
const TWO_SIDED = new Set<Kind>(["markdown", "html", "svg", "table", "notebook", "json"]);
const TEXT = new Set<Kind>([...TWO_SIDED, "code", "text"]);

export function kindOf(name: string, mime?: string): Kind {
  const lower = name.toLowerCase();
  const extension = /[^.]\.([^./]+)$/.exec(lower)?.[1];
  return (extension && BY_EXTENSION.get(extension)) || BY_NAME.get(lower) || byMime(mime) || "binary";
}

const PROGRAMS = extensions({ word: "docx doc", excel: "xlsx xlsm xls", powerpoint: "pptx ppt" });

/** A kind as people call it: an Office document by the name of its program. */
export const kindName = (name: string, kind: Kind) =>
  PROGRAMS.get(/\.([^./]+)$/.exec(name.toLowerCase())?.[1] ?? "") ?? kind;

export const isText = (kind: Kind) => TEXT.has(kind);
export const hasTwoSides = (kind: Kind) => TWO_SIDED.has(kind);

function byMime(mime: string | undefined): Kind | null {
  const type = mime?.split(";")[0]?.trim() ?? "";
  if (type === "application/pdf") return "pdf";
  if (type === "application/json") return "json";
  if (type === "image/svg+xml") return "svg";
  if (type === "image/tiff") return "binary";
  const family = type.split("/")[0];
  if (family === "image" || family === "audio" || family === "video" || family === "text") return family;
  return null;
}

function extensions<Name extends string>(table: Partial<Record<Name, string>>): Map<string, Name> {
  const rows = Object.entries<string>(table as Record<Name, string>);
  return new Map(rows.flatMap(([name, all]) => all.split(" ").map((one) => [one, name as Name] as const)));
}
