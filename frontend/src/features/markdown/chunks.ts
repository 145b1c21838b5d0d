/** Target size in characters: a growing text is parsed and laid out from its last chunk on only. */
const SIZE = 1500;

/** Blocks that may span blank lines, or refer to another part of the text. */
const TIED = /^ {0,3}<[a-z!/]|^ {0,3}\[[^\]]+\]:|\[\^/im;
const FENCE = /^\s*(?:>\s*)*(`{3,}|~{3,})/;

/** A Markdown text cut between top-level blocks. While it grows, chunks before the last one stay as they are. */
export function chunksOf(text: string): string[] {
  if (text.length < 2 * SIZE || TIED.test(text)) return [text];
  const chunks: string[] = [];
  let begin = 0;
  let at = 0;
  let fence = "";
  let isMath = false;
  let afterBlank = false;
  for (const line of text.split("\n")) {
    const mark = FENCE.exec(line)?.[1];
    // Only what stands at the margin and is no item of a list begins a block of its own for certain.
    const begins = afterBlank && !fence && !isMath && /^(#{1,6} |\p{L}|\*\*)/u.test(line);
    if (begins && at - begin >= SIZE) {
      chunks.push(text.slice(begin, at));
      begin = at;
    }
    if (mark && !fence) fence = mark;
    else if (mark && mark.startsWith(fence)) fence = "";
    else if (!fence && line.trim() === "$$") isMath = !isMath;
    afterBlank = line.trim() === "";
    at += line.length + 1;
  }
  return [...chunks, text.slice(begin)];
}
