import { outsideCode } from "./math";

/** HTML tags that a text may contain, and those that are removed because they could load or run something. */
const HTML = new Set(
  (
    "a abbr address article aside audio b bdi bdo big blockquote body br caption center cite code col colgroup dd del details " +
    "dfn div dl dt em embed figcaption figure font footer h1 h2 h3 h4 h5 h6 head header hr html i iframe img input ins kbd li " +
    "main mark nav noscript object ol p picture pre q rp rt ruby s samp script section small source span strike strong style " +
    "sub summary sup svg table tbody td tfoot th thead tr tt u ul var video wbr"
  ).split(" "),
);

/** A single letter is HTML where it is closed, too. */
const isHtml = (name: string, text: string) =>
  HTML.has(name.toLowerCase()) && (name.length > 1 || text.includes(`</${name}>`));

/** Mathematics is left alone, and so is the address of a link. */
const TAG = /\$\$[\s\S]*?\$\$|(?<!\]\()(?<!\\)<\/?([A-Za-z][\w.-]*)(?=[\s/>])/g;

/** `Vec<T>`, `Future<B>` and `<path>` are words of the text: only real HTML is HTML. */
export const withPlainTags = (text: string): string =>
  text.includes("<")
    ? outsideCode(text, (part) =>
        part.replace(TAG, (found, name?: string) =>
          name === undefined || isHtml(name, part) ? found : `\\${found}`,
        ),
      )
    : text;
