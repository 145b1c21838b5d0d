/** Events by which other parts of the page reach the message field and the conversation without holding them. */
const FILL = "deerflow:compose";

/** Puts `text` in the message field; a part in [brackets] is selected, for the person to replace it. */
export function fillComposer(text: string) {
  window.dispatchEvent(new CustomEvent(FILL, { detail: text }));
}

const SAY = "deerflow:say";

/** Sends `text` as the person's message. */
export function sayInComposer(text: string) {
  window.dispatchEvent(new CustomEvent(SAY, { detail: text }));
}

export function onSay(handler: (text: string) => void): () => void {
  const listen = (event: Event) => handler((event as CustomEvent<string>).detail);
  window.addEventListener(SAY, listen);
  return () => window.removeEventListener(SAY, listen);
}

/** Moves the cursor to the message field, and leaves what is there. */
export function focusComposer() {
  window.dispatchEvent(new CustomEvent(FILL, { detail: null }));
}

export function onFill(handler: (text: string | null) => void): () => void {
  const listen = (event: Event) => handler((event as CustomEvent<string | null>).detail);
  window.addEventListener(FILL, listen);
  return () => window.removeEventListener(FILL, listen);
}

const ATTACH = "deerflow:attach";

/** Asks for files to go with the message. */
export function attachFiles() {
  window.dispatchEvent(new CustomEvent(ATTACH));
}

export function onAttach(handler: () => void): () => void {
  window.addEventListener(ATTACH, handler);
  return () => window.removeEventListener(ATTACH, handler);
}

const QUOTE = "deerflow:quote";

/** Quotes `text` in the message field, after what is there; `place` says where it stands, if not in the last answer. */
export function quoteInComposer(text: string, place = "") {
  window.dispatchEvent(new CustomEvent(QUOTE, { detail: quoted(text, place) }));
}

export function onQuote(handler: (quote: string) => void): () => void {
  const listen = (event: Event) => handler((event as CustomEvent<string>).detail);
  window.addEventListener(QUOTE, listen);
  return () => window.removeEventListener(QUOTE, listen);
}

/** Longer passages are cut: the place says where the rest is. */
const QUOTED = 2000;

/** A passage as Markdown quotes it, with its place above. */
export function quoted(text: string, place = ""): string {
  const passage = text.trim();
  const cut = passage.length > QUOTED ? `${passage.slice(0, QUOTED).trimEnd()} …` : passage;
  const lines = cut.replace(/\n{3,}/g, "\n\n").split("\n");
  return [...(place ? [`${place}:`] : []), ...lines].map((line) => `> ${line}`.trimEnd()).join("\n");
}

const FIND = "deerflow:find";

/** Opens the search in the conversation. */
export function findInChat() {
  window.dispatchEvent(new CustomEvent(FIND));
}

export function onFind(handler: () => void): () => void {
  window.addEventListener(FIND, handler);
  return () => window.removeEventListener(FIND, handler);
}

const STEP = "deerflow:step";

/** Brings the first of these parts of the conversation into sight: ids of messages and calls. false: it has none of them. */
export function showStep(ids: readonly string[]): boolean {
  return !window.dispatchEvent(new CustomEvent(STEP, { detail: ids, cancelable: true }));
}

/** `handler` returns whether the conversation has one of them. */
export function onStep(handler: (ids: readonly string[]) => boolean): () => void {
  const listen = (event: Event) => {
    if (handler((event as CustomEvent<readonly string[]>).detail)) event.preventDefault();
  };
  window.addEventListener(STEP, listen);
  return () => window.removeEventListener(STEP, listen);
}

/** Start and end of the first part in brackets, or the end of the text. */
export function placeholderIn(text: string): [number, number] {
  const found = /\[[^[\]\n]+\]/.exec(text);
  return found ? [found.index, found.index + found[0].length] : [text.length, text.length];
}
