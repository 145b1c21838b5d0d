/** A passage that was selected in an answer or a file, and where it stands. Only the page is read. */

export interface Passage {
  text: string;
  place:
    | { kind: "answer"; question: string }
    | { kind: "file"; path: string; section: string; lines: [number, number] | null };
  /** Its end on the screen. */
  rect: DOMRect;
  /** The part of the page that it is in. */
  around: Element;
}

const HEADING = "h1, h2, h3, h4, h5, h6";

export function selectedPassage(selection: Selection | null): Passage | null {
  if (!selection || selection.isCollapsed || selection.rangeCount === 0) return null;
  const range = selection.getRangeAt(0);
  const text = selection.toString().trim();
  const node = range.commonAncestorContainer;
  const around = (node instanceof Element ? node : node.parentElement)?.closest("[data-answer], [data-file]");
  if (!text || !around) return null;
  const rect = range.getBoundingClientRect();
  const path = around.getAttribute("data-file");
  if (path === null) {
    const question = around.closest("article")?.querySelector("[data-question]")?.textContent ?? "";
    return { text, rect, around, place: { kind: "answer", question: short(question) } };
  }
  const lines = linesOf(around, rect);
  const section = lines ? "" : short(headingBefore(around, range)?.textContent ?? "");
  return { text, rect, around, place: { kind: "file", path, section, lines } };
}

const short = (text: string) => {
  const line = text.replace(/\s+/g, " ").trim();
  return line.length > 80 ? `${line.slice(0, 79).trimEnd()}…` : line;
};

/** The last heading before a passage, or the one that it is in. */
function headingBefore(around: Element, range: Range): Element | undefined {
  return [...around.querySelectorAll(`.prose-chat :is(${HEADING})`)].findLast(
    (heading) =>
      heading.contains(range.startContainer) ||
      (heading.compareDocumentPosition(range.startContainer) & Node.DOCUMENT_POSITION_FOLLOWING) !== 0,
  );
}

/** The numbers of the lines beside it, if they are shown. */
function linesOf(around: Element, { top, bottom }: DOMRect): [number, number] | null {
  const beside = [...around.querySelectorAll(".cm-lineNumbers .cm-gutterElement")].flatMap((one) => {
    const rect = one.getBoundingClientRect();
    const number = Number(one.textContent);
    return number && rect.height > 0 && rect.top < bottom - 2 && rect.bottom > top + 2 ? [number] : [];
  });
  return beside.length ? [Math.min(...beside), Math.max(...beside)] : null;
}
