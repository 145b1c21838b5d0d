/** Sources that a text cites, as agents write them: `[citation:Title](address)`, or `[1]` with a list of sources at the end. */
import { hostOf, isWeb } from "@/lib/web";
import { outsideCode } from "../math";

export interface Source {
  number: number;
  url: string;
  title: string;
  /** Path of the page as it was read, where the text names it. */
  kept: string | null;
}

export interface Cited {
  /** Each citation has become a link with the title `MARK`. */
  text: string;
  sources: Source[];
}

/** Title of a link that is a citation. */
export const MARK = "citation";

const TITLE = String.raw`\[citation:((?:[^[\]\n]|\[[^[\]\n]*\])*)\]`;
const ADDRESS = String.raw`\((?:<([^<>\n]*)>|((?:[^\s()<>]|\([^\s()]*\))+))(?:[ \t]+"[^"\n]*")?\)`;
const CITATION = new RegExp(`${TITLE}${ADDRESS}`, "g");
const LINK = new RegExp(String.raw`\]${ADDRESS}`, "g");
const NAMED = new RegExp(String.raw`\[([^[\]]*)\]${ADDRESS}`, "g");
/** `[1]`, `[1, 2]` */
const NUMBERS = /(?<![\\!])\[(\d{1,3}(?:[ ]?[,;，、][ ]?\d{1,3}){0,9})\](?![(:])/g;
/** A line of the list of sources: a number in brackets, and an address. */
const LISTED = /^[ \t]*(?:[-*+][ \t]+)?(?:\*\*)?\[(\d{1,3})\](?:\*\*)?[:.]?[ \t]+(\S.*)$/;
const URL_IN = /https?:\/\/[^\s<>"'`\])）]+/;
const KEPT_IN = /\]\((\/mnt\/user-data\/[^\s)]+)\)/;

export function withCitations(text: string, streaming = false): Cited {
  // Code in a title would tear its citation apart.
  const whole = text.replace(CITATION, (citation) => citation.replaceAll("`", ""));
  const shown = streaming ? withoutBegun(whole) : whole;
  const listed = listedIn(shown);
  const sources = new Map<string, Source>();
  let last = Math.max(0, ...listed.keys());
  const cite = (source: Omit<Source, "number">, number?: number) => {
    const known = sources.get(sameUrl(source.url));
    if (known && !known.title) known.title = source.title;
    if (known) return link(known);
    const made = { ...source, number: number ?? ++last };
    sources.set(sameUrl(source.url), made);
    return link(made);
  };
  if (!listed.size && !shown.includes("[citation:")) return { text: shown, sources: [] };
  const changed = outsideCode(shown, (part) =>
    part
      .split("\n")
      .map((line) => {
        const found = LISTED.exec(line);
        // Lines of the list stay lines, which Markdown would join.
        if (found && listed.has(Number(found[1]))) return `${line.trimEnd()}  `;
        return line
          .replace(CITATION, (_, title: string, inAngles?: string, plain?: string) => {
            const url = inAngles ?? plain ?? "";
            return isWeb(url) ? cite({ url, title: plainTitle(title), kept: null }) : `[${title}](${url})`;
          })
          .replace(NUMBERS, (whole, list: string) => {
            const numbers = list.split(/[^\d]+/).map(Number);
            if (!numbers.every((number) => listed.has(number))) return whole;
            return numbers.map((number) => cite(listed.get(number)!, number)).join("");
          });
      })
      .join("\n"),
  );
  return { text: changed, sources: [...sources.values()].sort((one, other) => one.number - other.number) };
}

/** Without a citation at the end that is still coming. */
function withoutBegun(text: string): string {
  const at = text.lastIndexOf("[citation:");
  const isBegun = at >= 0 && !text.slice(at).includes("\n") && text.slice(at).search(CITATION) !== 0;
  return isBegun ? text.slice(0, at) : text.replace(/\[c[a-z]{0,7}$/, "");
}

const link = ({ number, url }: Source) =>
  `[${number}](<${url.replace(/[|<>\\]/g, encodeURIComponent)}> "${MARK}")`;

function listedIn(text: string): Map<number, Omit<Source, "number">> {
  const found = new Map<number, Omit<Source, "number">>();
  if (!/^\s*(?:[-*+]\s+)?(?:\*\*)?\[\d/m.test(text)) return found;
  for (const line of text.split("\n")) {
    const [, number, rest = ""] = LISTED.exec(line) ?? [];
    const url = number && urlIn(rest);
    if (url && !found.has(Number(number)))
      found.set(Number(number), {
        url,
        title: titleIn(rest, url),
        kept: KEPT_IN.exec(rest)?.[1] ?? null,
      });
  }
  return found;
}

/** Target of a link in the line, else an address that stands in it. */
function urlIn(line: string): string | undefined {
  const links = [...line.matchAll(LINK)].map(([, inAngles, plain]) => inAngles ?? plain ?? "");
  return links.find(isWeb) ?? URL_IN.exec(line)?.[0].replace(/[.,;:!?]+$/, "");
}

/** Text of a line of the list besides its addresses. */
function titleIn(line: string, url: string): string {
  const words = line
    .replace(/\(?\[[^[\]]*\]\(\/[^()]*\)\)?/g, " ")
    .replace(NAMED, "$1")
    .replaceAll(url, " ");
  return plainTitle(words) || hostOf(url);
}

/** Without Markdown's signs, and without what stood around an address. */
const plainTitle = (text: string) =>
  text
    .replace(/\\(?=[^\w\s])|[*_`<>]/g, "")
    .replace(/\s+/g, " ")
    .replace(/^[\s.,:;–—-]+|[\s,:;–—(.-]+$/g, "")
    .slice(0, 300);

/** Two addresses of one page differ in what does not matter. */
export const sameUrl = (url: string) =>
  url
    .replace(/#.*$/, "")
    .replace(/^https?:\/\/(?:www\.)?/i, "")
    .replace(/\/$/, "");
