/** The part of a page that bears out a statement, found by the words and figures that both have. */

export interface Passage {
  before: string;
  /** The sentence that says most of it; empty: no part of the page is like it. */
  marked: string;
  after: string;
}

const MOST = 360;

/** `page` is Markdown as it was kept. */
export function passageOf(page: string, statement: string): Passage {
  const sentences = sentencesOf(plain(page));
  const wanted = termsOf(statement);
  let best = -1;
  let most = 0;
  sentences.forEach((sentence, i) => {
    let score = 0;
    for (const [term, weight] of termsOf(sentence)) if (wanted.has(term)) score += weight;
    if (score > most) [best, most] = [i, score];
  });
  if (best < 0 || most < 3) return { before: "", marked: "", after: cut(sentences.slice(0, 6).join(" ")) };
  const marked = cut(sentences[best]!);
  const room = Math.max(0, (MOST - marked.length) / 2);
  const before = sentences[best - 1] ?? "";
  const after = sentences[best + 1] ?? "";
  return {
    before: before.length <= room ? before : "",
    marked,
    after: after.length <= room ? after : "",
  };
}

const cut = (text: string) => (text.length <= MOST ? text : `${text.slice(0, MOST - 1).trimEnd()}…`);

/** Without the signs of Markdown, and without the head that the harness puts before a kept page. */
const plain = (page: string) =>
  page
    .replace(/^# [^\n]*\n\nSource: \S+\n/, "")
    .replace(/!?\[([^[\]\n]{0,300})\]\([^()\n]{0,600}\)/g, "$1")
    .replace(/^[ \t]*(?:#{1,6}|[-*+>]|\d+\.)[ \t]+/gm, "")
    .replace(/[*_`|]+/g, " ");

const sentencesOf = (text: string) =>
  text
    .split(/\n+|(?<=[.!?…]["”’)]?)\s+(?=\p{Lu}|\d|["“(])|(?<=[。！？])/u)
    .map((one) => one.replace(/\s+/g, " ").trim())
    .filter((one) => one.length > 1);

/** Figures weigh most, short words nothing; of scripts without blanks pairs of signs count. */
function termsOf(text: string): Map<string, number> {
  const terms = new Map<string, number>();
  for (const [word] of text.toLowerCase().matchAll(/\d+(?:[.,]\d+)*|[\p{L}\p{M}]+/gu)) {
    if (/^\d/.test(word)) terms.set(word, 3);
    else if (/[\p{sc=Han}\p{sc=Hiragana}\p{sc=Katakana}]/u.test(word))
      for (let i = 0; i + 1 < word.length; i++) terms.set(word.slice(i, i + 2), 1);
    else if (word.length > 3) terms.set(word, word.length > 6 ? 1.5 : 1);
  }
  return terms;
}
